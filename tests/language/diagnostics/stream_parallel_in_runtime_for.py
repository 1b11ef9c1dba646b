# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f(x: oc.types.ndarray(dtype=oc.i32, ndim=1)):
    for i in x:
        with oc.stream_parallel():
            x[i] = 1

f(oc.ndarray(oc.i32, 4))
