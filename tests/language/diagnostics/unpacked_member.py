# raises OctantsSyntaxError
import dataclasses

import octants as oc


@dataclasses.dataclass
class State:
    v: oc.types.vector(3, oc.f32, unpacked=True)


@oc.kernel
def f(state: State) -> oc.f32:
    return state.v[0]


f(State(oc.Vector([1.0, 2.0, 3.0])))
