# raises OctantsTypeError
import octants as oc

@oc.real_func
def first(a: oc.types.ndarray(dtype=oc.f32, ndim=1)) -> oc.f32:
    return a[0]

@oc.kernel
def f(x: oc.types.ndarray(dtype=oc.f32, ndim=1)):
    oc.loop_config(block_dim=32)
    for i in range(32):
        sh = oc.simt.block.SharedArray(32, oc.f32)
        x[i] = first(sh)

f(oc.ndarray(oc.f32, 32))
