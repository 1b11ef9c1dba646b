# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f():
    global x
    x = 1

f()
