# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f(n: int) -> int:
    result = 0
    if n in (1, 2):
        result = 1
    return result

f(1)
