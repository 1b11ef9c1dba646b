# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f(n: int) -> int:
    n + 1

f(1)
