import numpy as np
from numba import njit, prange


@njit(parallel=True, fastmath=True)
def run(a, b):
    for i in prange(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            around = a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1]
            b[i, j] = a[i, j] + np.float32(0.1) * (around - np.float32(4) * a[i, j])
