# raises OctantsTypeError
import octants as oc


@oc.kernel
def f(n: int) -> int:
    a = [0] * n
    return a[0]


f(3)
