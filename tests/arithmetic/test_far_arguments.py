"""Functions of arguments far out, in loops that run in vectors: right, and of no consequence for the lanes beside them."""

import time

import numpy as np
import pytest

import octants as oc

#: More than a vector has lanes.
COUNT = 67
REAL = {oc.f32: np.float32, oc.f64: np.float64}


def kernel_of(function, dtype):
    @oc.kernel
    def apply(x: oc.types.NDArray, y: oc.types.NDArray, steps: oc.i32):
        for i in range(x.shape[0]):
            # A loop inside is what has neighbouring iterations run in lanes.
            for _ in range(steps):
                y[i] = y[i] + function(x[i])

    def values(x):
        y = np.zeros(len(x), REAL[dtype])
        apply(np.asarray(x, REAL[dtype]), y, 1)
        return y

    return values


def spread(special, ordinary):
    """Special arguments, one in a vector of ordinary ones each, and many together."""
    rows = [np.full(COUNT, ordinary) for _ in special]
    for at, (row, one) in enumerate(zip(rows, special)):
        row[at * 5 % COUNT] = one
    return np.concatenate([*rows, np.resize(special, COUNT)])


@pytest.mark.parametrize("dtype", [oc.f32, oc.f64])
def test_exponentials_that_overflow_or_vanish(arch, dtype):
    real = REAL[dtype]
    least, most = (
        np.log(np.finfo(real).smallest_subnormal.astype(np.longdouble)),
        np.log(np.longdouble(np.finfo(real).max)),
    )
    ends = [
        least - 5,
        least - 1,
        least + 0.5,
        least + 3,
        least + 12,
        -most,
        most - 3,
        most - 0.01,
        most + 0.01,
        most + 9,
    ]
    x = spread(np.array([*ends, 2 * least, 2.5 * most, 1e30, -1e30, np.inf, -np.inf, np.nan], real), real(0.3))
    values = kernel_of(oc.exp, dtype)(x)
    with np.errstate(all="ignore"):
        exact = np.exp(x.astype(np.longdouble))
        ulp = np.spacing(np.abs(exact).astype(real)).astype(np.longdouble)
        error = np.abs(values.astype(np.longdouble) - exact) / ulp
    certain = np.isfinite(values) & np.isfinite(exact.astype(real))
    np.testing.assert_array_equal(np.isnan(values), np.isnan(x))
    np.testing.assert_array_equal(np.isinf(values), np.isinf(exact.astype(real)))
    assert error[certain].max() <= 6, (x[certain][error[certain].argmax()], error[certain].max())
    assert len(set(values[x == real(0.3)])) == 1


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_large_angles(arch, name):
    large = np.geomspace(9e3, 1.07e9, 200).astype(np.float32)
    # Close to where the function has zeros: what is left of the angle is small.
    zeros = (np.pi * (np.round(large / np.pi) + (0.5 if name == "cos" else 0))).astype(np.float32)
    beyond = np.float32([2**30, 2**31, 1e12, 3e38])
    special = np.concatenate([large, -large, zeros, beyond, [np.inf, -np.inf, np.nan]])
    x = spread(special.astype(np.float32), np.float32(0.3))
    values = kernel_of(getattr(oc, name), oc.f32)(x)
    finite = np.isfinite(x)
    assert np.isnan(values[~finite]).all()
    exact = getattr(np, name)(x[finite].astype(np.longdouble))
    error = np.abs(values[finite] - exact) / np.maximum(np.spacing(np.abs(exact).astype(np.float32)), 2e-14)
    assert error.max() <= 6, (x[finite][error.argmax()], error.max())
    assert len(set(values[x == np.float32(0.3)])) == 1


@pytest.mark.alone
@pytest.mark.no_device
@pytest.mark.parametrize(("name", "near", "far"), [("exp", 1, -200)])
def test_far_arguments_take_little_longer(name, near, far):
    """They took 10 to 24 times as long: processors are slow at products that vanish."""
    oc.init(arch=oc.cpu, cpu_max_num_threads=1)
    function = getattr(oc, name)

    @oc.kernel
    def work(x: oc.types.NDArray, y: oc.types.NDArray):
        for i in range(x.shape[0]):
            for j in range(200):
                y[i] = y[i] + function(x[i] + 1e-6 * j)

    def seconds(argument):
        x, y = np.full(1024, argument, np.float32), np.zeros(1024, np.float32)
        times = []
        for _ in range(8):
            begin = time.perf_counter()
            work(x, y)
            times.append(time.perf_counter() - begin)
        return min(times)

    assert seconds(far) < 5 * seconds(near)
