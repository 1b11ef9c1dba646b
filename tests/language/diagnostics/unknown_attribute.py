# raises OctantsCompilationError
import octants as oc

@oc.kernel
def f(a: float) -> float:
    return oc.sine(a)

f(1.0)
