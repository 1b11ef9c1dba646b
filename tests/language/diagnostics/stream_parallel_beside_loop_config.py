# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f(x: oc.types.ndarray(dtype=oc.i32, ndim=1)):
    oc.loop_config(serialize=True)
    with oc.stream_parallel():
        for i in x:
            x[i] = i

f(oc.ndarray(oc.i32, 4))
