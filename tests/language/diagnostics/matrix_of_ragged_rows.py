# raises OctantsTypeError
import octants as oc


@oc.kernel
def k():
    m = oc.Matrix([[1, 2], [3]])


k()
