# raises OctantsTypeError
import octants as oc

x = oc.Vector.field(3, oc.i32, shape=())
int(x)
