# raises OctantsRuntimeTypeError
import dataclasses
import octants as oc

@dataclasses.dataclass
class State:
    x: oc.types.ndarray(dtype=oc.f32, ndim=1)

@oc.kernel
def f(state: State):
    state.x[0] = 1.0

f(oc.ndarray(oc.f32, 10))
