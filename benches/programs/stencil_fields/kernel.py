import octants as qd


@qd.kernel
def run(a: qd.template(), b: qd.template()):
    for i, j in b:
        if 0 < i < b.shape[0] - 1 and 0 < j < b.shape[1] - 1:
            around = a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1]
            b[i, j] = a[i, j] + 0.1 * (around - 4.0 * a[i, j])


def prepare(data, fill):
    a, b = (qd.field(qd.f32, shape=data[name].shape) for name in ("a", "b"))
    if fill:
        a.from_numpy(data["a"])
    return run, (a, b), lambda returned: {"b": b.to_numpy()}
