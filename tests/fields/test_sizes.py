"""More than 2³¹ elements: indices of 32 bits, addresses of 64. Pages that nothing touches take no memory of a host."""

import numpy as np
import pytest

import octants as oc

# Just above 2³¹ elements, with an odd row.
ROWS, COLUMNS = 46349, 46341
LAST = (ROWS - 1, COLUMNS - 1)
Bytes = oc.types.ndarray(dtype=oc.u8, ndim=2)


@oc.kernel
def put(x: Bytes, i: oc.i32, j: oc.i32, value: oc.u8):
    x[i, j] = value


@oc.kernel
def get(x: Bytes, i: oc.i32, j: oc.i32) -> oc.u8:
    return x[i, j]


@oc.kernel
def last_rows(x: Bytes):
    for i, j in oc.ndrange((ROWS - 3, ROWS), COLUMNS):
        x[i, j] = oc.cast((i + j) % 251, oc.u8)


@oc.kernel
def row_sum(x: Bytes, i: oc.i32) -> oc.i32:
    total = 0
    for j in range(x.shape[1]):
        total += x[i, j]
    return total


@pytest.fixture(params=[None, (1, 0)], ids=["rows", "columns"])
def large(arch, request):
    if arch == "reference":
        pytest.skip("the interpreter takes a minute for a row")
    return oc.tensor(oc.u8, (ROWS, COLUMNS), layout=request.param)


def test_elements_beyond_31_bits(large):
    put(large, *LAST, 7)
    put(large, 0, 0, 3)
    large[ROWS - 1, COLUMNS - 2] = 9
    assert get(large, *LAST) == large[LAST] == 7
    assert get(large, ROWS - 1, COLUMNS - 2) == 9 and get(large, 0, 0) == large[0, 0] == 3
    assert row_sum(large, ROWS - 1) == 16
    last_rows(large)
    assert row_sum(large, ROWS - 2) == ((np.arange(COLUMNS) + ROWS - 2) % 251).sum()
    assert row_sum(large, ROWS - 4) == 0


@pytest.mark.parametrize("layout", ["rows", "columns", "blocks", "vectors", "entries apart", "offset"])
def test_fields_beyond_31_bits(arch, layout):
    offset, shape = (0, 0), (ROWS, COLUMNS)
    match layout:
        case "rows":
            x = oc.field(oc.u8, shape)
        case "columns":
            x = oc.field(oc.u8, shape, order="ji")
        case "blocks":
            x, shape = oc.field(oc.u8), (1450 * 32, 1450 * 32)
            oc.root.dense(oc.ij, 1450).dense(oc.ij, 32).place(x)
        case "vectors" | "entries apart":
            shape = (27000, 27000)
            kind = oc.Layout.AOS if layout == "vectors" else oc.Layout.SOA
            x = oc.Vector.field(3, oc.u8, shape, layout=kind)
        case "offset":
            offset = (-5, 7)
            x = oc.field(oc.u8, shape, offset=offset)

    @oc.kernel
    def write(i: oc.i32, j: oc.i32, value: oc.u8):
        x[i, j] = value

    @oc.kernel
    def read(i: oc.i32, j: oc.i32) -> oc.i32:
        total = 0
        for k in range(3):
            if oc.static(isinstance(x, oc.MatrixField)):
                total += x[i, j - k].sum()
            else:
                total += x[i, j - k]
        return total

    i, j = (start + extent - 1 for start, extent in zip(offset, shape))
    write(i, j, 50)
    x[i, j - 1] = 3
    entries = 3 if layout in ("vectors", "entries apart") else 1
    assert read(i, j) == 53 * entries and np.array(x[i, j]).min() == 50


def test_gradients_beyond_31_bits(arch):
    if arch != "cpu":
        pytest.skip("16 GiB of pages that nothing touches")
    x = oc.field(oc.f32, (ROWS, COLUMNS), needs_grad=True)
    loss = oc.field(oc.f32, (), needs_grad=True)

    @oc.kernel
    def last(i: oc.i32):
        for j in range(COLUMNS - 4, COLUMNS):
            loss[None] += x[i, j] ** 2

    x[LAST] = 3
    last(ROWS - 1)
    loss.grad[None] = 1
    last.grad(ROWS - 1)
    assert loss[None] == 9 and x.grad[LAST] == 6 and x.grad[0, 0] == 0


def test_arrays_of_the_host_beyond_31_bits():
    x = np.zeros((ROWS, COLUMNS), np.uint8)
    put(x, *LAST, 3)
    put(x[::-1], ROWS - 1, 1, 4)
    put(x[:, ::-1], ROWS - 1, COLUMNS - 1, 5)
    assert (x[LAST], x[0, 1], x[ROWS - 1, 0]) == (3, 4, 5)
    assert get(x.T[:, ::2].T, ROWS // 2, COLUMNS - 1) == 3


def test_loops_fills_and_copies_beyond_31_bits():
    rows, columns = 5, 429496731
    assert rows * columns == 2**31 + 7
    x = oc.field(oc.u8, (rows, columns))

    @oc.kernel
    def write():
        for i, j in x:
            x[i, j] = oc.cast((3 * i + j) % 251, oc.u8)

    @oc.kernel
    def total() -> oc.i64:
        result = oc.i64(0)
        for I in oc.grouped(x):
            result += x[I]
        return result

    @oc.kernel
    def increase():
        for i, j in oc.ndrange(rows, columns):
            x[i, j] += oc.u8(1)

    @oc.kernel
    def refill():
        x.fill(2)

    write()
    ends = np.arange(columns - 1000, columns)
    copy = x.to_numpy()
    assert all((copy[i, -1000:] == (3 * i + ends) % 251).all() for i in range(rows))
    assert total() == int(copy.sum(dtype=np.int64))
    copy[4, -1] = 77
    x.from_numpy(copy)
    del copy
    increase()
    assert x[4, columns - 1] == 78 and x[0, 0] == 1
    x.fill(3)
    assert total() == 3 * rows * columns
    refill()
    assert x[4, columns - 1] == x[0, 0] == 2
