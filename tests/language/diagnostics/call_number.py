# raises OctantsTypeError
import octants as oc

n = 3

@oc.kernel
def f() -> int:
    return n(1)

f()
