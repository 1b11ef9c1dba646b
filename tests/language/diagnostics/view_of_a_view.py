# raises OctantsTypeError
import octants as oc

@oc.kernel
def f(v: oc.BufferView) -> oc.i32:
    return oc.BufferView(v, 1, 2).size

f(oc.ndarray(oc.f32, 10)[2:])
