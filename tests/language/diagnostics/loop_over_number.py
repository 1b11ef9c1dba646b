# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f():
    for i in 10:
        pass

f()
