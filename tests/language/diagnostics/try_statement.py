# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f():
    try:
        pass
    except ValueError:
        pass

f()
