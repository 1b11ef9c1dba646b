# raises OctantsIndexError
import octants as oc


@oc.kernel
def k():
    v = oc.Vector([1, 2, 3])
    x = v[3]


k()
