# raises OctantsAssertionError
import octants as oc

oc.init(debug=True, log_level="error")

@oc.func
def last(v):
    return v[v.size]

@oc.kernel
def f(v: oc.BufferView) -> oc.i32:
    return last(v[1:])

f(oc.ndarray(oc.i32, 10)[2:6])
