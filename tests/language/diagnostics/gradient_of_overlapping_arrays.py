# raises OctantsRuntimeError
import octants as oc

oc.init(log_level="error")
V = oc.types.ndarray(dtype=oc.f32, ndim=1)


@oc.kernel
def square(x: V, y: V):
    for i in x:
        y[i] = x[i] * x[i]


x = oc.ndarray(oc.f32, 4, needs_grad=True)
square.grad(x, x)
