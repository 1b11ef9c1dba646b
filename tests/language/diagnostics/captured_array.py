# raises OctantsCompilationError
import octants as oc

data = oc.ndarray(oc.f32, 10)

@oc.kernel
def f() -> float:
    return data[0]

f()
