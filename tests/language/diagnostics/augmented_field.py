# raises OctantsNameError
import octants as oc


x = oc.field(oc.f32, shape=4)


@oc.kernel
def f():
    x += 1


f()
