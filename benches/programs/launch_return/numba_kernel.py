import numpy as np
from numba import njit


@njit
def run(k):
    return np.int32(k + np.int32(1))
