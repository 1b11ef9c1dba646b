# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f():
    with open('x'):
        pass

f()
