# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def first_positive(x: oc.types.ndarray(dtype=oc.f32, ndim=1)) -> int:
    for i in range(10):
        if x[i] > 0:
            return i
    return -1

first_positive(oc.ndarray(oc.f32, 10))
