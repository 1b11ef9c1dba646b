# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f() -> int:
    a, b = 1, 2, 3
    return a

f()
