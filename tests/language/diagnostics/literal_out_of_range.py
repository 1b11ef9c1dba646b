# raises OctantsTypeError
import octants as oc

@oc.kernel
def f() -> int:
    return 3000000000

f()
