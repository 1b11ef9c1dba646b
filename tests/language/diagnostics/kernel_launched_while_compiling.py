# raises OctantsSyntaxError
import octants as oc

def again():
    return endless()

@oc.kernel
def endless() -> oc.f32:
    return again() + 1.0

endless()
