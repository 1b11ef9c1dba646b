# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f(x: oc.i32):
    y = super().step(x)

f(1)
