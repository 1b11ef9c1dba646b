# raises OctantsTypeError
import octants as oc


@oc.kernel
def k():
    x = oc.random(oc.u1)


k()
