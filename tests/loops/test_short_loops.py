"""A parallel loop with loops inside gives the same with few iterations, which run one by one on a CPU, as with many, which run in lanes of vectors."""

import numpy as np
import pytest
from devices import INTERPRETED

import octants as oc

REALS = oc.types.ndarray(dtype=oc.f64, ndim=1)


@oc.func
def product(v):
    return v * 0.9 + 0.1


@oc.func
def acos(v):
    return oc.acos(v * 0.5)


@oc.func
def atan2(v):
    return oc.atan2(v, 0.7)


@oc.func
def power(v):
    return v**1.3


FUNCTIONS = {
    "product": product,
    "sqrt": oc.sqrt,
    "sin": oc.sin,
    "cos": oc.cos,
    "tan": oc.tan,
    "exp": oc.exp,
    "log": oc.log,
    "tanh": oc.tanh,
    "acos": acos,
    "atan2": atan2,
    "pow": power,
}


def kernels(arch, name, fast_math):
    """A kernel that runs `steps` steps of the function in each iteration."""
    oc.init(arch=getattr(oc, arch), fast_math=fast_math, log_level="error")
    function = FUNCTIONS[name]

    @oc.kernel
    def run(x: REALS, y: REALS, steps: oc.i32):
        for i in range(x.shape[0]):
            v = x[i]
            for _ in range(steps):
                v = function(v)
            y[i] = v

    return run


def results(run, values, steps):
    """What the kernel and its gradient give for these."""
    x, y = (oc.ndarray(oc.f64, len(values), needs_grad=True) for _ in range(2))
    x.from_numpy(values)
    run(x, y, steps)
    y.grad.fill(1.0)
    run.grad(x, y, steps)
    return y.to_numpy(), x.grad.to_numpy()


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("fast_math", [False, True])
def test_few_iterations_give_what_many_do(arch, name, fast_math):
    run = kernels(arch, name, fast_math)
    steps = 1 if fast_math else 3
    values = np.linspace(1.1, 1.4, 67)
    together = results(run, values, steps)
    for count in (1, 2, 3, 8, 17, 66):
        for few, many in zip(results(run, values[:count].copy(), steps), together, strict=True):
            if fast_math and arch not in INTERPRETED:
                # Of the C library or as arithmetic: 4 ULP each at most, and a few operations around.
                assert np.all(np.abs(few - many[:count]) <= 16 * np.spacing(np.abs(many[:count])))
            else:
                assert few.tobytes() == many[:count].tobytes(), count
