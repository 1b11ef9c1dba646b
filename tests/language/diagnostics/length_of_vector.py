# raises OctantsCompilationError
import octants as oc


@oc.kernel
def f(x: float) -> float:
    v = oc.Vector([x, 2.0])
    return v.length()


f(1.0)
