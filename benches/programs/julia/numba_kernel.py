import numpy as np
from numba import njit, prange

TWO, THREE, FOUR, SHIFT = np.float32(2), np.float32(3), np.float32(4), np.float32(1.5)


@njit(parallel=True, fastmath=True, error_model="numpy")
def run(image, cx, cy):
    scale = THREE / np.float32(image.shape[0])
    for i in prange(image.shape[0]):
        for j in range(image.shape[1]):
            x = np.float32(j) * scale - SHIFT
            y = np.float32(i) * scale - SHIFT
            n = 0
            while x * x + y * y < FOUR and n < 256:
                t = x * x - y * y + cx
                y = TWO * x * y + cy
                x = t
                n += 1
            image[i, j] = n
