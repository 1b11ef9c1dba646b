import numpy as np
from numba import njit, prange

ZERO, ONE, SOFT = np.float32(0), np.float32(1), np.float32(1e-4)


@njit(parallel=True, fastmath=True, error_model="numpy")
def run(x, y, z, m, ax, ay, az):
    for i in prange(x.shape[0]):
        sx = ZERO
        sy = ZERO
        sz = ZERO
        xi = x[i]
        yi = y[i]
        zi = z[i]
        for j in range(x.shape[0]):
            dx = x[j] - xi
            dy = y[j] - yi
            dz = z[j] - zi
            inverse = ONE / np.sqrt(dx * dx + dy * dy + dz * dz + SOFT)
            f = m[j] * inverse * inverse * inverse
            sx += dx * f
            sy += dy * f
            sz += dz * f
        ax[i] = sx
        ay[i] = sy
        az[i] = sz
