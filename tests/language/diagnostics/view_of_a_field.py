# raises OctantsTypeError
import octants as oc

x = oc.field(oc.f32, shape=8)


@oc.kernel
def k() -> oc.f32:
    return oc.BufferView(x, 2, 4)[0]


k()
