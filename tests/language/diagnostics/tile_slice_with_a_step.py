# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f(x: oc.types.ndarray(dtype=oc.f32, ndim=2)):
    oc.loop_config(block_dim=16)
    for i in range(16):
        t = oc.simt.Tile16x16.zeros(dtype=oc.f32)
        t[:] = x[0:16:2, 0:16]

f(oc.ndarray(oc.f32, (16, 16)))
