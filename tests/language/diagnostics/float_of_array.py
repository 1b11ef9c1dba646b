# raises OctantsTypeError
import octants as oc

x = oc.ndarray(oc.f32, (3,))
float(x)
