# raises OctantsRuntimeTypeError
import octants as oc

x = oc.field(oc.f32, shape=3)


@oc.kernel
def f(x: oc.types.ndarray()):
    x[0] = 1


f(x)
