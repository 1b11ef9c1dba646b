# raises OctantsTypeError
import octants as oc

@oc.kernel
def f(a: float, b: float) -> int:
    return a & b

f(1.0, 2.0)
