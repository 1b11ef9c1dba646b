# raises OctantsTypeError
import octants as oc


@oc.kernel
def k():
    v = oc.Vector([1, 2, 3, 4])
    v = oc.Vector([1, 2, 3])


k()
