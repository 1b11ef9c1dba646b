# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f():
    yield 1

f()
