# raises OctantsCompilationError
import octants as oc

@oc.kernel
def f(v: oc.BufferView) -> oc.i32:
    return v.length

f(oc.ndarray(oc.f32, 10)[2:])
