# raises OctantsCompilationError
import math

import octants as oc


@oc.kernel
def f(x: oc.f32) -> oc.f32:
    return math.sin(x)


f(1.0)
