# raises OctantsSyntaxError
import octants as oc

block = oc.stream_parallel()

@oc.kernel
def f(x: oc.types.ndarray(dtype=oc.i32, ndim=1)):
    with block:
        x[0] = 1

f(oc.ndarray(oc.i32, 4))
