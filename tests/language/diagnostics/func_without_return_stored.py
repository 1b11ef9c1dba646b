# raises OctantsTypeError
import octants as oc


x = oc.field(oc.f32, shape=4)


@oc.func
def shift(a):
    b = a + 1


@oc.kernel
def f():
    x[0] = shift(1)


f()
