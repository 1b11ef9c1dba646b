# raises OctantsTypeError
import octants as oc


@oc.kernel
def f(n: int) -> int:
    v = oc.Vector([n, 2])
    result = 0
    if v > 1:
        result = 1
    return result


f(1)
