# raises OctantsTypeError
import octants as oc


@oc.kernel
def k():
    m = oc.Matrix([[1.0, 2.0], [3.0, 4.0]])
    x = m @ oc.Vector([1.0, 2.0, 3.0])


k()
