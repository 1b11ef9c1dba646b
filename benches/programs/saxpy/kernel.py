import octants as qd

vector = qd.types.ndarray(dtype=qd.f32, ndim=1)


@qd.kernel
def run(a: qd.f32, x: vector, y: vector):
    for i in range(x.shape[0]):
        y[i] = a * x[i] + y[i]
