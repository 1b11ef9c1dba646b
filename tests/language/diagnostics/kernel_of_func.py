# raises OctantsSyntaxError
import octants as oc

@oc.kernel
@oc.func
def f(x: oc.i32):
    pass
