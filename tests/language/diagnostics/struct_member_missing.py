# raises OctantsCompilationError
import octants as oc

Point = oc.types.struct(x=oc.f32, y=oc.f32)


@oc.kernel
def k():
    p = Point(x=1, y=2)
    a = p.z


k()
