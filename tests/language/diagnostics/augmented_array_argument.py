# raises OctantsSyntaxError
import octants as oc


@oc.kernel
def f(x: oc.types.ndarray()):
    x += 1


f(oc.ndarray(oc.f32, 4))
