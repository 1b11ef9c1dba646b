# raises OctantsAssertionError
import octants as oc

oc.init(debug=True)


@oc.kernel
def f(x: oc.types.ndarray(dtype=oc.f32, ndim=2), i: oc.i32) -> oc.f32:
    return x[i, 1]


f(oc.ndarray(oc.f32, (2, 3)), 5)
