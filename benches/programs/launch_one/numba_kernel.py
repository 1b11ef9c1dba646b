import numpy as np
from numba import njit


@njit(fastmath=True)
def run(x):
    for i in range(x.shape[0]):
        x[i] = x[i] + np.float32(1)
