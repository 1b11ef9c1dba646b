import dataclasses

from harness.bindings import language_value

import octants as qd

Vector = qd.types.ndarray(dtype=qd.f32, ndim=1)
USED = {"a": Vector, "b": Vector, "c": Vector, "d": Vector, "scale": qd.f32}
UNUSED = {f"array{n}": Vector for n in range(11)} | {f"scalar{n}": qd.f32 for n in range(4)}
State = dataclasses.make_dataclass("State", list((USED | UNUSED).items()))


@qd.kernel
def run(state: State):
    for i in range(state.d.shape[0]):
        state.d[i] = state.scale * state.a[i] + state.b[i] + state.c[i]


def prepare(data, fill):
    values = {name: language_value(qd, value, fill=fill) for name, value in data.items()}
    arrays = {name: qd.ndarray(qd.f32, 16) for name in UNUSED if name.startswith("array")}
    scalars = {name: 1.0 for name in UNUSED if name.startswith("scalar")}
    state = State(**values, **arrays, **scalars)
    return run, (state,), lambda returned: {"d": state.d.to_numpy()}
