# raises OctantsCompilationError
import numpy as np

import octants as oc


@oc.kernel
def f(x: float) -> float:
    a = oc.Vector([1.0, x])
    return np.dot(a, a)


f(1.0)
