# raises OctantsSyntaxError
import octants as oc

@oc.func
def fill(x):
    with oc.stream_parallel():
        for i in x:
            x[i] = 1

@oc.kernel
def f(x: oc.types.ndarray(dtype=oc.i32, ndim=1)):
    with oc.stream_parallel():
        fill(x)

f(oc.ndarray(oc.i32, 4))
