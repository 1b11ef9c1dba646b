# raises OctantsTypeError
import octants as oc

@oc.kernel
def f():
    for i in oc.ndrange(2.5, 3):
        pass

f()
