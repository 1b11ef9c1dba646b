# raises OctantsTypeError
import octants as oc

@oc.kernel
def f() -> oc.u16:
    return oc.u16(-1)

f()
