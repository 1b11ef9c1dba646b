# raises OctantsCompilationError
import octants as oc


@oc.kernel
def total(x: oc.types.ndarray(dtype=oc.f32, ndim=1)) -> oc.f32:
    return sum(x)


total(oc.ndarray(oc.f32, 10))
