# raises ValueError
import octants as oc

@oc.kernel
def f(x: oc.types.ndarray(dtype=oc.f32, ndim=1)):
    for i in x:
        x[i] = 1.0

f(oc.ndarray(oc.f64, 10))
