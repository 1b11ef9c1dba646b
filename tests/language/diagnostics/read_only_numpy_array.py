# raises ValueError
import octants as oc

import numpy as np

@oc.kernel
def f(x: oc.types.ndarray(dtype=oc.f32, ndim=1)):
    for i in x:
        x[i] = 1.0

frozen = np.zeros(10, dtype=np.float32)
frozen.flags.writeable = False
f(frozen)
