# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f():
    for i in range(3):
        pass
    else:
        pass

f()
