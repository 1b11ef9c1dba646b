# raises OctantsCompilationError
import octants as oc

part = oc.ndarray(oc.f32, 8)[2:6]


@oc.kernel
def k() -> oc.i32:
    return part.size


k()
