"""Loops that carry many values: what they keep is taken together, and each value has its own place in it."""

import re

import numpy as np
import pytest

import octants as oc

STEPS = 3


def powers(count, tmp_path):
    """`y[i]` is the sum of `(c x[i])²ⁿ` for as many constants `c`."""
    names = [f"v{number}" for number in range(count)]
    text = ["import octants as oc", "REALS = oc.types.ndarray(dtype=oc.f64, ndim=1)"]
    text += ["@oc.kernel", "def kernel(x: REALS, y: REALS, n: oc.i32):", "    for i in x:"]
    text += [f"        {name} = x[i] * {0.5 + number / 128}" for number, name in enumerate(names)]
    text += ["        for k in range(n):", *(f"            {name} = {name} * {name}" for name in names)]
    text += [f"        y[i] = {' + '.join(names)}"]
    path = tmp_path / f"powers_{count}.py"
    path.write_text("\n".join(text) + "\n", encoding="utf-8")
    space = {}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), space)
    return space["kernel"]


@pytest.mark.parametrize("count", [2, 40, 70])
def test_each_of_many_values_is_kept_apart(arch, count, tmp_path):
    kernel = powers(count, tmp_path)
    x, y = (oc.ndarray(oc.f64, 20, needs_grad=True) for _ in range(2))
    values = np.linspace(0.5, 1.5, 20)
    x.from_numpy(values)
    y.grad.fill(1.0)
    kernel(x, y, STEPS)
    kernel.grad(x, y, STEPS)
    constants = 0.5 + np.arange(count)[:, None] / 128
    power = 2**STEPS
    expected = (power * constants * (constants * values) ** (power - 1)).sum(axis=0)
    np.testing.assert_allclose(x.grad.to_numpy(), expected, rtol=1e-12)


def test_tapes_as_long_as_each_other_are_taken_by_one_call(tmp_path):
    oc.init(arch=oc.cpu, log_level="error")
    taken = []
    for count in (2, 30):
        kernel = powers(count, tmp_path)
        x, y = (oc.ndarray(oc.f64, 20, needs_grad=True) for _ in range(2))
        kernel.grad(x, y, STEPS)
        taken.append(len(re.findall(r"call noalias ptr %", kernel.dump("llvm", grad=True))))
    assert taken[0] == taken[1] > 0
