# raises OctantsRuntimeTypeError
import octants as oc


@oc.kernel
def f(m: oc.types.matrix(2, 2, oc.f32)) -> oc.f32:
    return m[0, 0]


f(oc.Matrix([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
