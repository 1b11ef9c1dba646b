# raises OctantsNameError
import octants as oc


x = oc.field(oc.f32, shape=())


@oc.kernel
def f():
    x += 1


f()
