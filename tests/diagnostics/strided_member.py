# raises ValueError
import dataclasses

import numpy as np

import octants as oc


@dataclasses.dataclass
class State:
    x: oc.types.ndarray(dtype=oc.i32, ndim=1)


@oc.kernel
def f(state: State) -> oc.i32:
    return state.x[1]


f(State(np.arange(10, dtype=np.int32)[::2]))
