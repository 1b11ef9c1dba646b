# raises OctantsTypeError
import octants as oc

@oc.kernel
def f(x: oc.types.ndarray(dtype=oc.f32, ndim=1)):
    oc.atomic_cas(x[0], 1.0, 2.0)

f(oc.ndarray(oc.f32, 10))
