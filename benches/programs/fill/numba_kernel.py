from numba import njit, prange


@njit(parallel=True, fastmath=True)
def run(x, value):
    for i in prange(x.shape[0]):
        x[i] = value
