# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f(a: int) -> int:
    return a

f(a=1, b=2)
