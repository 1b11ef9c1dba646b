# raises OctantsTypeError
import octants as oc

@oc.kernel
def f(a: float) -> float:
    return ~a

f(1.0)
