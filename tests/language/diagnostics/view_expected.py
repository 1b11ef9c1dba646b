# raises OctantsRuntimeTypeError
import octants as oc

@oc.kernel
def f(v: oc.BufferView[oc.f32]):
    v[0] = 1.0

f(oc.ndarray(oc.f32, 10))
