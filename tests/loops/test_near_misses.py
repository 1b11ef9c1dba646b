"""One row outside: without checks neither the end of the process nor harm to another array, and zeros where nobody wrote."""

import numpy as np
import pytest

import octants as oc

Table = oc.types.ndarray(dtype=oc.f32, ndim=2)


@oc.kernel
def outside(x: Table, low: oc.i32, high: oc.i32) -> oc.f32:
    total = 0.0
    for j in range(x.shape[1]):
        total += x[low, j] + x[high, j]
    return total


@oc.kernel
def write_outside(x: Table, low: oc.i32, high: oc.i32):
    for j in range(x.shape[1]):
        x[low, j] = 1
        x[high, j] = 1


# Of each size of allocation: a few bytes, some pages, huge pages; few rows and many.
SHAPES = [(2, 3), (3, 50), (2, 5000), (3, 70_000), (4, 1 << 20), (400, 300), (1, 16)]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_row_outside_of_an_array(shape, request):
    arrays = [oc.ndarray(oc.f32, shape) for _ in range(3)]
    if shape == (4, 1 << 20) and oc.cfg.arch == oc.cuda:
        pytest.skip("margins of a GPU are memory: a quarter of an array is no row of it")
    for _ in range(2):
        write_outside(arrays[1], -1, shape[0])
        assert outside(arrays[1], -1, shape[0]) == 2 * shape[1]
    assert all(not array.to_numpy().any() for array in arrays)
    fresh = oc.ndarray(oc.f32, shape)
    assert outside(fresh, -1, shape[0]) == 0


def test_a_row_outside_of_a_field():
    before, x, after = (oc.Vector.field(3, oc.f32, (4, 9)) for _ in range(3))

    @oc.kernel
    def reach(low: oc.i32, high: oc.i32) -> oc.f32:
        total = 0.0
        for j in range(9):
            total += (x[low, j] + x[high, j]).sum()
            x[low, j] = oc.Vector([1.0, 2.0, 3.0])
            x[high, j] = oc.Vector([1.0, 2.0, 3.0])
        return total

    assert reach(-1, 4) == 0 and reach(-1, 4) == 108
    assert not any(field.to_numpy().any() for field in (before, x, after))


def test_a_loop_that_is_longer_than_a_short_field():
    bounds = [oc.field(oc.i32, 2) for _ in range(3)]
    read = oc.field(oc.i32, (3, 20))

    @oc.kernel
    def look(field: oc.template(), row: oc.i32):
        for j in range(20):
            read[row, j] = field[j]

    for row, field in enumerate(bounds):
        field.fill(100)
        look(field, row)
    assert read.to_numpy().tolist() == 3 * [[100, 100, *18 * [0]]]


def test_debug_mode_reports_them(arch):
    oc.init(arch=getattr(oc, arch), debug=True, log_level="error")
    for low, high in ((-1, 3), (0, 4)):
        with pytest.raises(oc.OctantsAssertionError, match="out of bounds"):
            outside(np.zeros((4, 3), np.float32), low, high)
