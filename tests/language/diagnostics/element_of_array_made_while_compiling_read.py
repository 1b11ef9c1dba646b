# raises OctantsCompilationError
import numpy as np

import octants as oc


@oc.kernel
def f(n: int) -> float:
    a = np.ones((3, 3))
    return a[n, 0]


f(1)
