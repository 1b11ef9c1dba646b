# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f(x: oc.types.ndarray(dtype=oc.f32, ndim=1)):
    for i in range(3):
        x[i:5] = 1.0

f(oc.ndarray(oc.f32, 10))
