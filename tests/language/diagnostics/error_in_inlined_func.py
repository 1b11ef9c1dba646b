# raises OctantsTypeError
import octants as oc

@oc.func
def low_bits(v):
    return v & 7

@oc.func
def twice(v):
    return low_bits(v) * 2

@oc.kernel
def f(a: float) -> float:
    return twice(a + 1.0)

f(1.0)
