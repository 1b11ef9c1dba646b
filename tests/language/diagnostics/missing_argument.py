# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f(a: int, b: int) -> int:
    return a + b

f(1)
