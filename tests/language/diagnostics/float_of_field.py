# raises OctantsTypeError
import octants as oc

x = oc.field(oc.f32, shape=(3, 2))
float(x)
