# raises OctantsSyntaxError
import octants as oc


@oc.kernel
def k():
    v = oc.Vector([1.0, 2.0])
    v.xx = v


k()
