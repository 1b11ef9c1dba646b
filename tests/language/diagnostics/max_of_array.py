# raises OctantsTypeError
import octants as oc


@oc.kernel
def f(x: oc.types.ndarray(dtype=oc.i32, ndim=1)):
    y = max(x)


f(oc.ndarray(oc.i32, 3))
