# raises OctantsTypeError
import octants as oc

@oc.kernel
def f(n: int) -> int:
    return n + "one"

f(1)
