import numpy as np
from numba import njit, prange


@njit(parallel=True, fastmath=True)
def run(x):
    for i in prange(x.shape[0]):
        v = x[i]
        for _ in range(1000):
            # Numba widens integers to 64 bits: each cast brings the product back to 32.
            v = np.int32(np.int32(np.int32(1664525) * v + np.int32(1013904223)) % np.int32(2147483647))
        x[i] = v
