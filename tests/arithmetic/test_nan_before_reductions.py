"""What the guide says of NaN that stands in a variable or an element before a parallel maximum or minimum."""

import numpy as np
import pytest

import octants as oc

A = oc.types.ndarray(dtype=oc.f32, ndim=1)


@oc.kernel
def element_max(x: A, y: A):
    for i in x:
        y[0] = max(y[0], x[i])


@oc.kernel
def element_min(x: A, y: A):
    for i in x:
        y[0] = min(y[0], x[i])


@oc.kernel
def element_atomic(x: A, y: A):
    for i in x:
        oc.atomic_max(y[0], x[i])


@oc.kernel
def element_if(x: A, y: A):
    for i in x:
        if x[i] > y[0]:
            y[0] = x[i]


@oc.kernel
def local_max(x: A, y: A) -> oc.f32:
    m = y[0]
    for i in x:
        m = max(m, x[i])
    return m


@oc.kernel
def local_min(x: A, y: A) -> oc.f32:
    m = y[0]
    for i in x:
        m = min(m, x[i])
    return m


@oc.kernel
def local_atomic(x: A, y: A) -> oc.f32:
    m = y[0]
    for i in x:
        oc.atomic_max(m, x[i])
    return m


@oc.kernel
def local_if(x: A, y: A) -> oc.f32:
    m = y[0]
    for i in x:
        if x[i] > m:
            m = x[i]
    return m


def values():
    x = np.arange(1, 41, dtype=np.float32)
    x[[0, 7]] = 1, np.nan
    return x, np.array([np.nan], np.float32)


@pytest.mark.parametrize("fast_math", [True, False])
def test_nan_of_an_element_gives_way(arch, fast_math):
    oc.init(arch=getattr(oc, arch), fast_math=fast_math, log_level="error")
    for kernel, expected in ((element_max, 40), (element_min, 1), (element_atomic, 40), (element_if, 40)):
        x, y = values()
        kernel(x, y)
        if arch == "reference" and kernel is element_if:
            assert np.isnan(y[0])
        else:
            assert y[0] == expected, kernel


def test_nan_of_a_variable_gives_way_without_fast_math(arch):
    oc.init(arch=getattr(oc, arch), fast_math=False, log_level="error")
    for kernel, expected in ((local_max, 40), (local_min, 1), (local_atomic, 40), (local_if, 40)):
        found = kernel(*values())
        assert np.isnan(found) if arch == "reference" and kernel is local_if else found == expected, kernel
