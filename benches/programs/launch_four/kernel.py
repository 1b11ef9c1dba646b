import octants as qd

vector = qd.types.ndarray(dtype=qd.f32, ndim=1)


@qd.kernel
def run(a: vector, b: vector, c: vector, d: vector, s: qd.f32, t: qd.f32):
    for i in range(d.shape[0]):
        d[i] = s * a[i] + t * b[i] + c[i]
