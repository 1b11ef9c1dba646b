# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def scale(x: oc.types.ndarray(dtype=oc.f32, ndim=1), a):
    for i in x:
        x[i] *= a
