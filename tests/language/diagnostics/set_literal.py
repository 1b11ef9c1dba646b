# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f():
    s = {1, 2}

f()
