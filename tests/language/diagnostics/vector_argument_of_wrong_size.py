# raises OctantsSyntaxError
import octants as oc


@oc.func
def length(v: oc.math.vec3):
    return v.norm()


@oc.kernel
def f() -> oc.f32:
    return length(oc.Vector([3.0, 4.0]))


f()
