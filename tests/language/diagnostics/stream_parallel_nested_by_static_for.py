# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f(x: oc.types.ndarray(dtype=oc.i32, ndim=1)):
    with oc.stream_parallel():
        for k in oc.static(range(2)):
            with oc.stream_parallel():
                x[k] = 1

f(oc.ndarray(oc.i32, 4))
