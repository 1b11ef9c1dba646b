# raises OctantsCompilationError
import octants as oc


@oc.kernel
def f(x: float) -> float:
    m = oc.Matrix([[1.0, x], [3.0, 4.0]])
    return m.T[0, 1]


f(1.0)
