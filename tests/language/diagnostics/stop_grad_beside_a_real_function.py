# raises OctantsTypeError
import octants as oc

x = oc.field(oc.f32, shape=3, needs_grad=True)
y = oc.field(oc.f32, shape=(), needs_grad=True)


@oc.real_func
def load(i: oc.i32) -> oc.f32:
    return x[i]


@oc.kernel
def f():
    for i in range(3):
        oc.stop_grad(x)
        y[None] += load(i)


f()
