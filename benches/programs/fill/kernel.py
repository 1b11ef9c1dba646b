import octants as qd


@qd.kernel
def run(x: qd.types.ndarray(dtype=qd.f32, ndim=1), value: qd.f32):
    for i in range(x.shape[0]):
        x[i] = value
