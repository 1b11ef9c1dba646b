# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f():
    class C:
        pass

f()
