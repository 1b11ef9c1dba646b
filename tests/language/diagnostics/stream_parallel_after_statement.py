# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f(x: oc.types.ndarray(dtype=oc.i32, ndim=1)):
    oc.static_assert(True)
    n = x.shape[0]
    with oc.stream_parallel():
        for i in range(n):
            x[i] = i

f(oc.ndarray(oc.i32, 4))
