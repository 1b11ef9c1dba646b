# raises OctantsTypeError
import octants as oc


@oc.kernel
def f(n: int) -> bool:
    return (n, 1) < [n, 2]


f(1)
