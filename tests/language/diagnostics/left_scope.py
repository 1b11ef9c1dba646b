# raises OctantsNameError
import octants as oc

@oc.kernel
def f(n: int) -> int:
    if n > 0:
        result = n
    return result

f(1)
