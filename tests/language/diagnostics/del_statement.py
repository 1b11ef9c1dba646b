# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f():
    x = 1
    del x

f()
