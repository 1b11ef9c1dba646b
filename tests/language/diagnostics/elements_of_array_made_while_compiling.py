# raises OctantsCompilationError
import numpy as np

import octants as oc


@oc.kernel
def f() -> float:
    a = np.zeros(3)
    a[0] = 1.0
    return a[0]


f()
