# raises OctantsSyntaxError
import octants as oc

x, y = oc.field(oc.f32, shape=4), oc.field(oc.f32, shape=4)

@oc.kernel
def step():
    x.fill(1)
    y.copy_from(x)

step()
