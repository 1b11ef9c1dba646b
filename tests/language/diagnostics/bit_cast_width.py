# raises OctantsTypeError
import octants as oc

@oc.kernel
def f(a: float) -> oc.i64:
    return oc.bit_cast(a, oc.i64)

f(1.0)
