# raises OctantsCompilationError
import numpy as np

import octants as oc


@oc.kernel
def f(x: float) -> float:
    return np.array([x, 2.0])[0]


f(1.0)
