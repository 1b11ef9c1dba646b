import octants as qd

vector = qd.types.ndarray(dtype=qd.f32, ndim=1)


@qd.kernel
def run(a: vector, u: vector, s: vector, v: vector):
    for i in range(a.shape[0]):
        u[i] = a[i]
        s[i] = a[i]
        v[i] = a[i]
