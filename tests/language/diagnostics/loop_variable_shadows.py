# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f() -> int:
    i = 3
    for i in range(10):
        pass
    return i

f()
