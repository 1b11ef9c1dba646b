# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f():
    for i, j in oc.ndrange(2, 3, 4):
        pass

f()
