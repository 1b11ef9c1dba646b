"""An index whose computation overflows ``i32``: the wrapped value is what is checked, and what is used."""

import numpy as np
import pytest

import octants as oc

pytestmark = pytest.mark.host_access

Ints = oc.types.ndarray(dtype=oc.i32, ndim=1)
Table = oc.types.ndarray(dtype=oc.i32, ndim=2)


@pytest.fixture(params=["unchecked", "debug"])
def session(arch, request):
    """Every device, with and without checks."""
    oc.init(arch=getattr(oc, arch), debug=request.param == "debug", log_level="error")


@oc.kernel
def scaled(x: Ints, out: Ints, factor: oc.i32, shift: oc.i32):
    for i in range(4):
        out[i] = x[i * factor * factor + shift]


def test_products_wrap(session):
    x, out = np.arange(8, dtype=np.int32) + 10, np.zeros(4, np.int32)
    scaled(x, out, 65536, 5)
    assert out.tolist() == [15] * 4


@oc.kernel
def wide_product(x: Ints, a: oc.u64, b: oc.u64):
    for i in range(4):
        x[oc.cast(a * b, oc.i32) & 7] += 1


def test_products_of_64_bits_wrap(session):
    x = np.zeros(8, np.int32)
    wide_product(x, 2**63 + 3, 5)
    assert x.tolist() == [0] * 7 + [4]


@oc.kernel
def strided(x: Ints, out: Ints, first: oc.i32):
    for i in range(first, first + 4):
        out[i - first] = x[i * 4 + 1]


def test_products_of_counters_wrap(session):
    x, out = np.arange(16, dtype=np.int32), np.zeros(4, np.int32)
    strided(x, out, 2**30)
    assert out.tolist() == [1, 5, 9, 13]


@oc.kernel
def shifted(x: Ints, out: Ints, a: oc.i32, b: oc.i32):
    for i in range(8):
        out[i] = x[i + a + b]


def test_sums_wrap(session):
    x, out = np.arange(8, dtype=np.int32) + 20, np.zeros(8, np.int32)
    shifted(x, out, -(2**31), -(2**31))
    assert out.tolist() == x.tolist()
    shifted(x, out, 2**31 - 1, -(2**31 - 1))
    assert out.tolist() == x.tolist()


@oc.kernel
def back(x: Ints, out: Ints, a: oc.i32, b: oc.i32):
    for i in range(8):
        x[i + (a - b)] = i + 1
        out[i] = x[i - b + a]


def test_differences_wrap(session):
    x, out = np.zeros(8, np.int32), np.zeros(8, np.int32)
    back(x, out, -(2**31), -(2**31))
    assert x.tolist() == out.tolist() == list(range(1, 9))


@oc.kernel
def rows(x: Table, out: Table, n: oc.i32):
    for i, j in oc.ndrange(4, 4):
        total = 0
        for k in range(2):
            total += x[i + n * n, j * n * n + k]
        out[i, j] = total


def test_indices_of_several_axes_wrap(session):
    x, out = np.arange(16, dtype=np.int32).reshape(4, 4), np.zeros((4, 4), np.int32)
    rows(x, out, 65536)
    assert out.tolist() == [[int(x[i, 0] + x[i, 1])] * 4 for i in range(4)]


def test_indices_of_fields_wrap(session):
    x, y = oc.field(oc.i32, shape=16, offset=-4), oc.field(oc.i32, shape=(4, 4))
    blocks = oc.field(oc.i32)
    oc.root.dense(oc.i, 4).dense(oc.i, 4).place(blocks)

    @oc.kernel
    def write(n: oc.i32, low: oc.i32):
        for i in range(8):
            x[i + n * n - 4] = i + 1
            blocks[i + low + low] = i + 2
            y[i // 4 + n * n, (i % 4) * n * n + i % 4] = i + 3

    write(65536, -(2**31))
    assert [x[i] for i in range(-4, 4)] == list(range(1, 9))
    assert [blocks[i] for i in range(8)] == list(range(2, 10))
    assert y.to_numpy()[:2].ravel().tolist() == list(range(3, 11))


def test_lanes_of_a_field_that_begins_at_the_least_index(session):
    x = oc.field(oc.i32, shape=64, offset=-(2**31))

    @oc.kernel
    def fill(n: oc.i32):
        for i in range(16):
            x[i + n] = i

    @oc.kernel
    def sums(n: oc.i32, out: Ints):
        for i in range(16):
            total = 0
            for k in range(i % 3 + 1):
                total += x[i + n + 1]
            out[i] = total

    out = np.zeros(16, np.int32)
    fill(-(2**31))
    sums(2**31 - 1, out)
    assert out.tolist() == [i * (i % 3 + 1) for i in range(16)]

    @oc.kernel
    def crossing(n: oc.i32, out: Ints):
        for i in range(16):
            total = 0
            for k in range(i % 3 + 1):
                if i >= 4:
                    total += x[i + n]
            out[i] = total

    crossing(2**31 - 4, out)
    assert out.tolist() == [0, 0, 0, 0, *((i - 4) * (i % 3 + 1) for i in range(4, 16))]


@oc.kernel
def counted(x: Ints, out: Ints, n: oc.i32):
    for i in range(16):
        total = 0
        for k in range(i + 1):
            total += x[(i + n) * n + k]
        out[i] = total


def test_lanes_wrap(session):
    x, out = np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    counted(x, out, 0)
    assert out.tolist() == [i * (i + 1) // 2 for i in range(16)]
    out[:] = 0

    @oc.kernel
    def widened(x: Ints, out: Ints, n: oc.i32):
        for i in range(16):
            total = 0
            for k in range(i + 1):
                total += x[(i + n) * 4 - 4 * i + k]
            out[i] = total

    widened(x, out, 2**30)
    assert out.tolist() == [i * (i + 1) // 2 for i in range(16)]


def test_a_wrapped_index_outside_is_reported(arch):
    oc.init(arch=getattr(oc, arch), debug=True, log_level="error")
    x, out = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    with pytest.raises(oc.OctantsAssertionError, match="out of bounds"):
        shifted(x, out, 2**31 - 1, 1)
    with pytest.raises(oc.OctantsAssertionError, match="out of bounds"):
        strided(x, out, 2**29)
