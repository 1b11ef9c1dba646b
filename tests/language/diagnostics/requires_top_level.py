# raises OctantsSyntaxError
import octants as oc

@oc.func(requires_top_level=True)
def fill(x: oc.template()):
    for i in x:
        x[i] = 1.0

@oc.kernel
def f(x: oc.types.ndarray(), n: oc.i32):
    if n > 0:
        fill(x)

f(oc.ndarray(oc.f32, 10), 1)
