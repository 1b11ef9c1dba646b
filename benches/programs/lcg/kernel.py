import octants as qd


@qd.kernel
def run(x: qd.types.ndarray(dtype=qd.i32, ndim=1)):
    for i in range(x.shape[0]):
        v = x[i]
        for _ in range(1000):
            v = (1664525 * v + 1013904223) % 2147483647
        x[i] = v
