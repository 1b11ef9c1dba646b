"""Types and arrays that the tests of views share."""

import numpy as np

import octants as oc

Ints = oc.types.ndarray(dtype=oc.i32, ndim=1)
Clamped = oc.BufferView[oc.i32, "clamp"]


def counted(n):
    array = oc.ndarray(oc.i32, n)
    array.from_numpy(np.arange(n, dtype=np.int32))
    return array
