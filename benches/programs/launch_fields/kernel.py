import octants as qd


@qd.kernel
def run(a: qd.template(), b: qd.template(), c: qd.template(), d: qd.template(), scale: qd.f32, shift: qd.f32):
    for i in d:
        d[i] = scale * a[i] + b[i] + c[i] + shift


def prepare(data, fill):
    fields = {name: qd.field(qd.f32, shape=16) for name in "abcd"}
    for name, field in fields.items():
        field.from_numpy(data[name])
    arguments = (*fields.values(), float(data["scale"]), float(data["shift"]))
    return run, arguments, lambda returned: {"d": fields["d"].to_numpy()}
