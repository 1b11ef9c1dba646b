# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f():
    for i in range(0, 10, 2):
        pass

f()
