# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f() -> float:
    return oc.f32(1.0, 2.0)

f()
