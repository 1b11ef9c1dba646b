# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f(v: oc.BufferView):
    for i in range(2):
        v[0:4:2][i] = 1.0

f(oc.ndarray(oc.f32, 10)[:])
