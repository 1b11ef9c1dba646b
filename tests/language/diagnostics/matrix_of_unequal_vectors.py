# raises OctantsTypeError
import octants as oc


@oc.kernel
def k():
    v = oc.Vector([1.0, 2.0])
    m = oc.Matrix([v, oc.Vector([1.0, 2.0, 3.0])])


k()
