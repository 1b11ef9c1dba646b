# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f(n: int = 3):
    pass
