# raises OctantsTypeError
import octants as oc


@oc.kernel
def k():
    v = oc.Vector([1, 2])
    if v > 0:
        v[0] = 1


k()
