import octants as qd


@qd.kernel
def run():
    for i in d:
        d[i] = a[i] + b[i] + c[i]


def prepare(data, fill):
    global a, b, c, d
    a, b, c, d = (qd.field(qd.f32, shape=16) for _ in range(4))
    for name, field in {"a": a, "b": b, "c": c, "d": d}.items():
        field.from_numpy(data[name])
    return run, (), lambda returned: {"d": d.to_numpy()}
