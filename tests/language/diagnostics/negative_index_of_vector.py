# raises OctantsSyntaxError
import octants as oc


@oc.kernel
def f(x: float) -> float:
    v = oc.Vector([x, 2.0])
    return v[-1]


f(1.0)
