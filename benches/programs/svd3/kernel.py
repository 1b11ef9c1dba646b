import octants as qd

matrices = qd.types.ndarray(dtype=qd.types.matrix(3, 3, qd.f32), ndim=1)


@qd.kernel
def run(a: matrices, u: matrices, s: matrices, v: matrices):
    for i in range(a.shape[0]):
        left, values, right = qd.svd(a[i])
        u[i] = left
        s[i] = values
        v[i] = right
