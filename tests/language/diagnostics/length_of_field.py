# raises OctantsTypeError
import octants as oc

x = oc.field(oc.f32, 4)


@oc.kernel
def f() -> int:
    return len(x)


f()
