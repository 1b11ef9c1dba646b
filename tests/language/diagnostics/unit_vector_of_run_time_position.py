# raises OctantsCompilationError
import octants as oc


@oc.kernel
def f(i: oc.i32):
    v = oc.Vector.unit(3, i, oc.f32)
    print(v)


f(1)
