# raises ValueError
import octants as oc


@oc.kernel
def f(x: oc.types.ndarray(ndim=1, element_shape=(2,))) -> oc.f32:
    return x[0][1]


f(oc.Vector.ndarray(3, oc.f32, 4))
