# raises OctantsSyntaxError
import dataclasses
import octants as oc

@dataclasses.dataclass
class State:
    n: oc.i32

@oc.kernel
def f(state: State):
    state.n = 3

f(State(2))
