# raises OctantsIndexError
import octants as oc

@oc.kernel
def f(x: oc.types.ndarray(dtype=oc.f32, ndim=2)):
    for i in range(10):
        x[i] = 1.0

f(oc.ndarray(oc.f32, (10, 10)))
