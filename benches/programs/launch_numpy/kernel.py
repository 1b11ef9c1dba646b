import octants as qd

vector = qd.types.ndarray(dtype=qd.f32, ndim=1)


@qd.kernel
def run(x: vector):
    for i in range(x.shape[0]):
        x[i] = x[i] + 1.0
