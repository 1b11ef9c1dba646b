# raises OctantsCompilationError
import octants as oc


@oc.kernel
def f(x: oc.types.ndarray(dtype=oc.i32, ndim=1)):
    for i, value in enumerate(x):
        x[i] = value + 1


f(oc.ndarray(oc.i32, 3))
