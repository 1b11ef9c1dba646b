# raises OctantsNameError
import octants as oc

@oc.kernel
def f(x: oc.types.ndarray(dtype=oc.i32, ndim=1)):
    with oc.stream_parallel():
        n = x.shape[0]
    with oc.stream_parallel():
        x[0] = n

f(oc.ndarray(oc.i32, 4))
