# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f(x: oc.types.ndarray(dtype=oc.i32, ndim=1)):
    with oc.stream_parallel(123, num_streams=4):
        x[0] = 1

f(oc.ndarray(oc.i32, 4))
