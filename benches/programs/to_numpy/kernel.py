import octants as qd


def prepare(data, fill):
    field = qd.field(qd.f32, shape=data["a"].shape)
    field.from_numpy(data["a"])
    return field.to_numpy, (), lambda returned: {"a": returned}
