# raises OctantsTypeError
import octants as oc



@oc.func
def first(v: oc.BufferView[oc.f32]):
    return v[0]


@oc.kernel
def k(x: oc.types.ndarray(dtype=oc.f32, ndim=1)) -> oc.f32:
    return first(x)


k(oc.ndarray(oc.f32, 8))
