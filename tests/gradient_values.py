"""Arrays of numbers, and central differences: what the tests of derivatives share."""

import numpy as np

import octants as oc

VEC = oc.types.ndarray(dtype=oc.f64, ndim=1)
INTS = oc.types.ndarray(dtype=oc.i32, ndim=1)
SCALAR = oc.types.ndarray(dtype=oc.f64, ndim=0)

X = [0.3, 0.7, 1.1, 0.9]


def made(values, needs_grad=True):
    """An ndarray of reals."""
    values = np.asarray(values, dtype=np.float64)
    array = oc.ndarray(oc.f64, values.shape, needs_grad=needs_grad)
    array.from_numpy(values)
    return array


def integers(values):
    """An ndarray of integers."""
    values = np.asarray(values, dtype=np.int32)
    array = oc.ndarray(oc.i32, values.shape)
    array.from_numpy(values)
    return array


def differences(value, x):
    """How much ``value(x)`` changes with each number of ``x``, by central differences."""
    x = np.asarray(x, dtype=np.float64)
    steps = 1e-6 * np.eye(len(x))
    return np.array([(value(x + step) - value(x - step)) / 2e-6 for step in steps])


@oc.kernel
def square(x: VEC, y: SCALAR):
    for i in x:
        y[None] += x[i] * x[i]
