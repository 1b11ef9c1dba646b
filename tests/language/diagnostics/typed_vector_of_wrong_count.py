# raises OctantsTypeError
import octants as oc


@oc.kernel
def k():
    v = oc.math.vec3(1, 2)


k()
