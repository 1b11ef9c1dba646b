# raises OctantsCompilationError
import octants as oc


@oc.kernel
def k(n: oc.i32):
    v = oc.Vector([1.0, 2.0, 3.0])
    w = v[0:n]


k(2)
