# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f():
    for i in range(10):
        if i > 5:
            break

f()
