# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f(a: int) -> int:
    return a

f(1, a=2)
