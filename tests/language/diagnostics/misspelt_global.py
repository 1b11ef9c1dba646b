# raises OctantsNameError
import octants as oc

density = oc.field(oc.f32, 4)


@oc.kernel
def f():
    for i in range(4):
        densty[i] = 1.0  # noqa: F821


f()
