# raises OctantsAssertionError
import octants as oc

oc.init(debug=True, log_level="error")

@oc.func
def checked(v):
    assert v < 5, "too large"
    return v

@oc.kernel
def f(x: oc.types.ndarray(dtype=oc.i32, ndim=1)):
    for i in x:
        x[i] = checked(i)

f(oc.ndarray(oc.i32, 10))
