# raises OctantsSyntaxError
import octants as oc


@oc.kernel
def f(n: int) -> int:
    while n > 3:
        n -= 1
    else:  # or else
        n = 0
    return n


f(5)
