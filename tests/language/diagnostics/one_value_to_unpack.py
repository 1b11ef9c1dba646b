# raises OctantsSyntaxError
import octants as oc


@oc.kernel
def f(n: int) -> int:
    a, b = (n,)
    return a


f(1)
