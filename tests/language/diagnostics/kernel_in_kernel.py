# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def inner():
    pass

@oc.kernel
def outer():
    inner()

outer()
