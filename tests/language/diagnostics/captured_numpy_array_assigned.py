# raises OctantsCompilationError
import numpy as np

import octants as oc

TABLE = np.zeros(3, dtype=np.int32)


@oc.kernel
def f():
    TABLE[0] = 1


f()
