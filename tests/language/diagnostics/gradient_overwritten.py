# raises OctantsCompilationError
import octants as oc

oc.init(log_level="error")


@oc.kernel
def step(a: oc.types.ndarray(dtype=oc.f32, ndim=1), b: oc.types.ndarray(dtype=oc.f32, ndim=1)):
    for i in a:
        b[i] = oc.sin(a[i])
    for i in a:
        a[i] = 0.0


a = oc.ndarray(oc.f32, 4, needs_grad=True)
b = oc.ndarray(oc.f32, 4, needs_grad=True)
step.grad(a, b)
