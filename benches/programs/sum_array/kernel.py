import octants as qd

vector = qd.types.ndarray(dtype=qd.f32, ndim=1)


@qd.kernel
def run(x: vector, total: vector):
    total[0] = 0.0
    for i in range(x.shape[0]):
        total[0] += x[i]
