# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f():
    while False:
        pass
    else:
        pass

f()
