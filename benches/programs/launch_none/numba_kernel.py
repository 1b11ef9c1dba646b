from numba import njit


@njit
def run():
    pass
