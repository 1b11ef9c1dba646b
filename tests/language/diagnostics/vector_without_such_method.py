# raises OctantsCompilationError
import octants as oc


@oc.kernel
def k():
    v = oc.Vector([1, 2])
    x = v.length2()


k()
