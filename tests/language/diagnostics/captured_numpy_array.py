# raises OctantsCompilationError
import numpy as np

import octants as oc

TABLE = np.array([1, 2, 3], dtype=np.int32)


@oc.kernel
def f(i: oc.i32) -> oc.i32:
    return TABLE[i]


f(1)
