# raises OctantsRuntimeError
import octants as oc

oc.init(log_level="error")
x = oc.field(oc.f32, shape=4, needs_grad=True)
y = oc.field(oc.f32, shape=4)


@oc.func
def scaled(i):
    return x[i] * 2.0


@oc.kernel
def scale():
    for i in x:
        y[i] = scaled(i)


scale.grad()
