# raises OctantsRuntimeError
import octants as oc

@oc.kernel
def f(x: oc.types.ndarray(dtype=oc.f32, ndim=1)):
    for i in x:
        x[i] = 1.0

old = oc.ndarray(oc.f32, 10)
oc.reset()
oc.init(log_level="error")
f(old)
