# raises OctantsCompilationError
import octants as oc


@oc.kernel
def f(n: oc.i32):
    v = oc.Vector.zero(oc.f32, n)
    print(v)


f(3)
