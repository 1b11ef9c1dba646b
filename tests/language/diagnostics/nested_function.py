# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f():
    def g():
        pass

f()
