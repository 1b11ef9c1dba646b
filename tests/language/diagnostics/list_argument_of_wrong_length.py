# raises OctantsRuntimeTypeError
import octants as oc


@oc.kernel
def f(v: oc.types.vector(3, oc.f32)):
    pass


f([1.0, 2.0])
