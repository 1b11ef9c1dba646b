# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f():
    for i, j in oc.ndrange(2, 3, axes=(0, 0)):
        pass

f()
