# raises OctantsTypeError
import octants as oc


@oc.real_func
def shift(a: oc.i32):
    b = a + 1


@oc.kernel
def f() -> oc.f32:
    return oc.sqrt(shift(1))


f()
