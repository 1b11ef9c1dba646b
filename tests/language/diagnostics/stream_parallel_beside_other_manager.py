# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f(x: oc.types.ndarray(dtype=oc.i32, ndim=1)):
    with oc.stream_parallel(), open("log.txt"):
        x[0] = 1

f(oc.ndarray(oc.i32, 4))
