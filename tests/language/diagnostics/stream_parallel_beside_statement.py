# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f(x: oc.types.ndarray(dtype=oc.i32, ndim=1), y: oc.types.ndarray(dtype=oc.i32, ndim=1)):
    """Fills both."""
    with oc.stream_parallel():
        for i in x:
            x[i] = i
    y[0] = 1
    with oc.stream_parallel():
        for i in y:
            y[i] = i

f(oc.ndarray(oc.i32, 4), oc.ndarray(oc.i32, 4))
