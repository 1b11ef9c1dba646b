import octants as qd


@qd.kernel
def run(x: qd.types.ndarray(dtype=qd.f32, ndim=1)) -> qd.f32:
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
    return s
