# raises OctantsTypeError
import octants as oc

@oc.kernel
def f(x: oc.types.ndarray(dtype=oc.f32, ndim=1)) -> float:
    return x + 1.0

f(oc.ndarray(oc.f32, 10))
