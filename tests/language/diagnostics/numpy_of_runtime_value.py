# raises OctantsCompilationError
import numpy as np

import octants as oc


@oc.kernel
def f(x: oc.f32) -> oc.f32:
    return np.sqrt(x)


f(1.0)
