# raises OctantsCompilationError
import octants as oc

oc.init(log_level="error")
x = oc.field(oc.f32, shape=4, needs_grad=True)
last = oc.field(oc.f32, shape=(), needs_grad=True)


@oc.kernel
def keep_last():
    for i in x:
        last[None] = x[i] * 2.0


keep_last.grad()
