# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f(*, n: int):
    pass
