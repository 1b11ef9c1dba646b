# raises OctantsRuntimeTypeError
import dataclasses
import octants as oc

@dataclasses.dataclass
class State:
    x: oc.types.ndarray(dtype=oc.f32, ndim=1)
    n: oc.i32

@oc.kernel
def f(state: State):
    for i in range(state.n):
        state.x[i] = 1.0

f(State(oc.ndarray(oc.f32, 10), 2.5))
