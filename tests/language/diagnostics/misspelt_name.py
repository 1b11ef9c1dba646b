# raises OctantsNameError
import octants as oc

@oc.kernel
def f() -> int:
    counter = 3
    return countre + 1

f()
