import octants as qd

grid = qd.types.ndarray(dtype=qd.f32, ndim=2)


@qd.kernel
def run(a: grid, b: grid):
    for i, j in qd.ndrange((1, a.shape[0] - 1), (1, a.shape[1] - 1)):
        around = a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1]
        b[i, j] = a[i, j] + 0.1 * (around - 4.0 * a[i, j])
