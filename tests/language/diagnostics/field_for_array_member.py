# raises OctantsRuntimeTypeError
import dataclasses

import octants as oc


@dataclasses.dataclass
class Pair:
    x: oc.types.NDArray[oc.f32, 1]


@oc.kernel
def f(pair: Pair):
    pair.x[0] = 1


f(Pair(oc.field(oc.f32, shape=3)))
