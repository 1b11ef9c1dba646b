# raises OctantsRuntimeTypeError
import octants as oc


@oc.kernel
def k() -> oc.math.vec3:
    return oc.Vector([1.0, 2.0])


k()
