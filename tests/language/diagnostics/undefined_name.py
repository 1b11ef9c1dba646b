# raises OctantsNameError
import octants as oc

@oc.kernel
def f() -> int:
    return foo + 1

f()
