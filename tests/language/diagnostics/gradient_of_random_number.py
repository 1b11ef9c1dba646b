# raises OctantsCompilationError
import octants as oc

oc.init(log_level="error")
x = oc.field(oc.f32, shape=4, needs_grad=True)
y = oc.field(oc.f32, shape=4, needs_grad=True)


@oc.kernel
def noisy():
    for i in x:
        noise = oc.random(oc.f32)
        y[i] = x[i] * noise


noisy.grad()
