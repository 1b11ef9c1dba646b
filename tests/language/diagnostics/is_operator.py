# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f(n: int) -> int:
    result = 0
    if n is 1:
        result = 1
    return result

f(1)
