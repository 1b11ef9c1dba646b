"""Bodies with so many functions of reals that loops over lanes would be functions of their own: values, and that code stays small."""

import re

import numpy as np
import pytest

import octants as oc

pytestmark = pytest.mark.no_device

N = 150


@oc.kernel
def chain(x: oc.types.ndarray(ndim=1), y: oc.types.ndarray(ndim=1), a: oc.types.ndarray(ndim=1), steps: int):
    for i in x:
        v = x[i]
        for _ in range(steps):
            for k in oc.static(range(6)):
                v = oc.sin(v) * 0.5 + oc.exp(-v * v) * 0.25
                v = oc.pow(oc.abs(v) + 1.0, a[0] + k) - oc.log(oc.abs(v) + 0.5)
                v = oc.tanh(v) + oc.cos(v)
                if v > 0.5:
                    v = oc.sin(v) + oc.pow(1.5, v)
        y[i] = v


def expected(v, a, steps):
    for _ in range(steps):
        for k in range(6):
            v = np.sin(v) * 0.5 + np.exp(-v * v) * 0.25
            v = (np.abs(v) + 1.0) ** (a + k) - np.log(np.abs(v) + 0.5)
            v = np.tanh(v) + np.cos(v)
            v = np.where(v > 0.5, np.sin(v) + 1.5**v, v)
    return v


@pytest.mark.parametrize(("dtype", "close"), [(oc.f64, 1e-11), (oc.f32, 2e-4)])
@pytest.mark.parametrize("fast_math", [False, True])
def test_values_are_those_of_numpy(dtype, close, fast_math):
    oc.init(arch=oc.cpu, fast_math=fast_math, log_level="error")
    x, y, a = oc.ndarray(dtype, N), oc.ndarray(dtype, N), oc.ndarray(dtype, 1)
    values = np.linspace(-2.0, 2.0, N)
    x.from_numpy(values.astype(x.to_numpy().dtype))
    a.from_numpy(np.full(1, 0.25, x.to_numpy().dtype))
    chain(x, y, a, 2)
    # A chain forgets where it began, but for what a condition decides.
    wrong = np.abs(y.to_numpy() - expected(values, 0.25, 2)) > close
    assert wrong.mean() < 0.02 if dtype == oc.f32 else not wrong.any()


def test_a_function_is_a_call_wherever_it_stands():
    oc.init(arch=oc.cpu, fast_math=True, log_level="error")
    x, y, a = (oc.ndarray(oc.f32, count) for count in (N, N, 1))
    chain(x, y, a, 1)
    text = chain.dump("llvm")
    of_the_library = len(re.findall(r"call [^@\n]*@_ZGV", text))
    # Where the C library has no vectors of a function, lanes are looped over, in one function for all places.
    loops = [line for line in text.splitlines() if line.startswith("define internal void @octants.llvm.")]
    assert of_the_library + text.count("call void @octants.llvm.") > 24
    assert len(loops) <= 6 and (of_the_library or len(loops) >= 3)
