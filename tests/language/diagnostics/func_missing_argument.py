# raises OctantsSyntaxError
import octants as oc

@oc.func
def add(a, b):
    return a + b

@oc.kernel
def f() -> int:
    return add(1)

f()
