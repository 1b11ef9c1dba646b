# raises OctantsRuntimeError
import octants as oc

oc.field(oc.f32, shape=(1,) * 13)
