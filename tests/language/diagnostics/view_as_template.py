# raises OctantsRuntimeTypeError
import octants as oc



@oc.kernel
def k(v: oc.template()) -> oc.f32:
    return v[0]


k(oc.ndarray(oc.f32, 8)[2:6])
