# raises OctantsTypeError
import octants as oc

@oc.kernel
def f(n: int) -> float:
    return oc.sin(n)

f(1)
