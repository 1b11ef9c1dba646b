# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f():
    g = lambda v: v + 1

f()
