# raises OctantsIndexError
import octants as oc


@oc.kernel
def k():
    m = oc.Matrix([[1, 2], [3, 4]])
    x = m[1]


k()
