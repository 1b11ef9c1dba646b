# raises OctantsIndexError
import octants as oc

@oc.kernel
def f(x: oc.types.ndarray(dtype=oc.f32, ndim=2)):
    oc.loop_config(block_dim=16)
    for i in range(16):
        t = oc.simt.Tile16x16.zeros(dtype=oc.f32)
        sh = oc.simt.block.SharedArray((4, 8), oc.f32)
        sh[i % 4, 8] = 1.0

f(oc.ndarray(oc.f32, (16, 16)))
