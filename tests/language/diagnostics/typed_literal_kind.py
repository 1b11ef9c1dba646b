# raises OctantsTypeError
import octants as oc

@oc.kernel
def f() -> float:
    return oc.f32(0)

f()
