# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f(n: int) -> int:
    n = n + 1
    return n

f(1)
