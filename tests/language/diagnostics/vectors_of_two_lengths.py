# raises OctantsTypeError
import octants as oc


@oc.kernel
def k():
    v = oc.Vector([1, 2, 3]) + oc.Vector([1, 2])


k()
