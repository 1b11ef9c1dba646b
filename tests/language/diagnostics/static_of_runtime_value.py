# raises OctantsCompilationError
import octants as oc

@oc.kernel
def f(n: int) -> int:
    result = 0
    if oc.static(n > 0):
        result = 1
    return result

f(1)
