from numba import njit, prange


@njit(parallel=True, fastmath=True)
def run(a, x, y):
    for i in prange(x.shape[0]):
        y[i] = a * x[i] + y[i]
