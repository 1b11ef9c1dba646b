from numba import njit


@njit(fastmath=True)
def run(a, b, c, d, s, t):
    for i in range(d.shape[0]):
        d[i] = s * a[i] + t * b[i] + c[i]
