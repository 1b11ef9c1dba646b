# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f():
    raise ValueError('no')

f()
