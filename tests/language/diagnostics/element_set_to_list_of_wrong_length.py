# raises TypeError
import octants as oc


x = oc.Vector.field(3, oc.f32, shape=4)
x[0] = [1.0, 2.0]
