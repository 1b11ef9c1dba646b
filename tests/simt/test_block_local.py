"""``oc.block_local`` before a loop that adds to fields: the same sums, gathered by the blocks of a GPU in their own memory."""

import re

import numpy as np
import pytest

import octants as oc

SUMS = re.compile(r"(?:atom|red)\.(?:relaxed\.gpu\.|relaxed\.cta\.)?(shared|global)\S*\.add")


def both(make, *fields):
    """What fields hold after ``make(hint)()`` without the hint, and with it; they begin with small numbers."""
    found = []
    for hint in (False, True):
        for field in fields:
            shape = field.to_numpy().shape
            field.from_numpy(np.arange(np.prod(shape)).reshape(shape).astype(field.to_numpy().dtype) % 7)
        kernel = make(hint)
        kernel()
        found.append([field.to_numpy() for field in fields])
    return found


def assert_same(make, *fields):
    plain, staged = both(make, *fields)
    for without, with_hint in zip(plain, staged, strict=True):
        assert np.array_equal(without, with_hint)
    return plain


@pytest.mark.parametrize("dtype", [oc.i32, oc.u32, oc.i64, oc.f32, oc.f64])
def test_elements_of_all_types_and_ranks(arch, dtype):
    x, y, z = oc.field(dtype, 5000), oc.field(dtype, (70, 90)), oc.field(dtype, (20, 18, 33))

    def make(hint):
        @oc.kernel
        def go():
            if oc.static(hint):
                oc.block_local(x)
            for i, k in oc.ndrange((1, 4999), 5):
                oc.atomic_add(x[i - 1], oc.cast(i % 8 + k, dtype))
                oc.atomic_sub(x[i + 1], oc.cast(k, dtype))
            if oc.static(hint):
                oc.block_local(y)
            for k, i, j in oc.ndrange(3, 70, 90):
                for a, b in oc.static(oc.ndrange(3, 3)):
                    at = oc.min(oc.max(i + a - 1, 0), 69), oc.min(oc.max(j + b - 1, 0), 89)
                    y[at] += oc.cast(i + a + k, dtype)
            if oc.static(hint):
                oc.block_local(z)
            for i, j, k in oc.ndrange((1, 19), (1, 17), (1, 32)):
                for a, b, c in oc.static(oc.ndrange(2, 2, 2)):
                    z[i - a, j - b + 1, k + c] += oc.cast((i * j * k) % 5, dtype)

        return go

    assert_same(make, x, y, z)


def test_bounds_that_only_the_launch_knows(arch):
    x = oc.field(oc.i32, 3000, offset=-100)

    def make(hint):
        @oc.kernel
        def add(lo: oc.i32, hi: oc.i32, times: oc.i32):
            if oc.static(hint):
                oc.block_local(x)
            for i, k in oc.ndrange((lo, hi), times):
                x[i] += k
                x[i + 1] += i
                x[i - 1] -= 1

        def go():
            for lo, hi, times in [(-99, 2899, 3), (0, 1, 100), (5, 5, 2), (7, 3, 2), (0, 1024, 0), (1, 1026, 1)]:
                add(lo, hi, times)

        return go

    assert_same(make, x)


def test_tensors_and_structs(arch):
    cell = oc.types.struct(mass=oc.f32, momentum=oc.types.vector(3, oc.f32))
    grid = cell.field(shape=(40, 50))
    stress = oc.Matrix.field(2, 2, oc.f64, shape=(40, 50))

    def make(hint):
        @oc.kernel
        def go():
            if oc.static(hint):
                oc.block_local(grid.mass, grid.momentum, stress)
            for i, j, k in oc.ndrange((1, 39), (1, 49), 4):
                for a, b in oc.static(oc.ndrange(3, 3)):
                    at = oc.Vector([i + a - 1, j + b - 1])
                    grid[at].mass += k % 2
                    grid[at].momentum += oc.Vector([i, j, k]) * (a + 1)
                    stress[at] += oc.Matrix([[i, b], [a, j]])

        return go

    assert_same(make, grid.mass, grid.momentum, stress)


def test_nested_fields(arch):
    x, y = oc.field(oc.f32), oc.field(oc.f32)
    oc.root.dense(oc.ij, (12, 9)).dense(oc.ij, (4, 8)).place(x, y)

    def make(hint):
        @oc.kernel
        def go():
            if oc.static(hint):
                oc.block_local(x)
            for i, j in y:
                for a, b in oc.static(oc.ndrange((-1, 2), (-1, 2))):
                    if 0 <= i + a < 48 and 0 <= j + b < 72:
                        x[i + a, j + b] += y[i, j] * (a + 2 * b + 3)

        return go

    assert_same(make, x, y)


@pytest.mark.parametrize("node", ["pointer", "bitmasked"])
def test_sparse_fields_get_the_same_cells(arch, node):
    found = []
    for hint in (False, True):
        x, y = oc.field(oc.i32), oc.field(oc.i32)
        blocks = getattr(oc.root, node)(oc.ij, (16, 16))
        blocks.dense(oc.ij, (8, 8)).place(x)
        others = getattr(oc.root, node)(oc.ij, (16, 16))
        others.dense(oc.ij, (8, 8)).place(y)

        @oc.kernel
        def fill():
            for i in range(1, 127):
                y[i, i] = i
                y[i, (i * i) % 120 + 2] = 3

        @oc.kernel
        def scatter(x: oc.template(), of: oc.template(), hint: oc.template()):
            if oc.static(hint):
                oc.block_local(x)
            for i, j in of:
                if of[i, j] > 0:
                    for a, b in oc.static(oc.ndrange((-1, 2), (-1, 2))):
                        x[i + a, j + b] += of[i, j]

        @oc.kernel
        def active(cells: oc.types.ndarray(oc.i32, 2)):
            for i, j in cells:
                cells[i, j] = oc.is_active(blocks, [8 * i, 8 * j])

        fill()
        scatter(x, y, hint)
        cells = np.zeros((16, 16), np.int32)
        active(cells)
        scatter(y, x, hint)  # slots of one tree tell of those of the other
        found.append((x.to_numpy(), y.to_numpy(), cells))
        oc.init(arch=oc.cfg.arch, log_level="error")
    for without, with_hint in zip(*found, strict=True):
        assert np.array_equal(without, with_hint)


def test_a_sparse_loop_that_adds_to_its_own_leaves(arch):
    x, y = oc.field(oc.i32), oc.field(oc.i32)
    blocks = oc.root.pointer(oc.ij, (16, 16))
    blocks.dense(oc.ij, (4, 4)).place(x, y)

    @oc.kernel
    def fill():
        for i in range(1, 63):
            y[i, (i * 7) % 60 + 1] = i

    @oc.kernel
    def scatter(hint: oc.template()):
        if oc.static(hint):
            oc.block_local(x)
        for i, j in y:
            for a, b in oc.static(oc.ndrange((-1, 2), (-1, 2))):
                if y[i, j] > 0:
                    x[i + a, j + b] += y[i, j]
            for k in range(3):
                x[i, j] += k

    @oc.kernel
    def count() -> oc.i32:
        cells = 0
        for i, j in x:
            cells += 1
        return cells

    fill()
    before = count()
    scatter(True)
    with_hint, cells = x.to_numpy(), count()
    y_then = y.to_numpy()
    expected = np.zeros_like(y_then)
    for i, j in np.argwhere(y_then > 0):
        expected[i - 1 : i + 2, j - 1 : j + 2] += y_then[i, j]
    assert cells >= before
    # Loops over cells that were there add 3 to each of them.
    rest = with_hint - expected
    assert set(np.unique(rest)) <= {0, 3}
    assert (rest == 3).sum() == before


def test_what_an_iteration_decides_for_itself(arch):
    x = oc.field(oc.i32, (64, 64))
    data = oc.field(oc.i32, (64, 64))
    data.from_numpy(np.random.default_rng(5).integers(0, 9, (64, 64)).astype(np.int32))

    def make(hint):
        @oc.kernel
        def go():
            if oc.static(hint):
                oc.block_local(x)
            for i, j in data:
                if data[i, j] == 4:
                    continue
                left = data[i, j]
                while left > 0:
                    left -= 2
                    x[i, j] += left
                    if left == 3:
                        break
                for a in range(-1, 2):
                    if 0 <= i + a < 64:
                        x[i + a, j] += a + 3
                # Anywhere.
                x[data[i, j], (i * j) % 64] += 1

        return go

    assert_same(make, x)


def test_loops_that_do_more_than_add_stay_as_they_are(arch):
    x, taken = oc.field(oc.i32, 2000), oc.field(oc.i32, 2000)

    def make(hint):
        @oc.kernel
        def go():
            if oc.static(hint):
                oc.block_local(x, taken)
            for i, k in oc.ndrange((1, 1999), 4):
                x[i - 1] += k
                oc.atomic_max(x[i + 1], -1)
                if oc.atomic_add(taken[i], 1) == 0:
                    taken[i] += 10

        return go

    _, counts = assert_same(make, x, taken)
    assert counts.min() >= 0


def test_blocks_of_a_size(arch):
    x = oc.field(oc.f32, (50, 60))

    def make(hint):
        @oc.kernel
        def go():
            for size in oc.static((32, 96, 512, 1024)):
                oc.loop_config(block_dim=size)
                if oc.static(hint):
                    oc.block_local(x)
                for i, j, k in oc.ndrange((1, 50), 59, 6):
                    x[i, j] += k
                    x[i - 1, j + 1] += i

        return go

    assert_same(make, x)


# ---- the code for a GPU --------------------------------------------------------------------------------------------------------


def sums(kernel):
    """How many additions of the code for a GPU go to a block's memory, and to the device's."""
    text = kernel.dump("ptx", capability=90)
    kinds = SUMS.findall(text)
    return kinds.count("shared"), kinds.count("global")


@pytest.mark.no_device
def test_a_block_adds_in_its_own_memory():
    x = oc.field(oc.f32, (256, 256))

    def make(hint):
        @oc.kernel
        def go():
            if oc.static(hint):
                oc.block_local(x)
            for i, j, _ in oc.ndrange(256, 256, 8):
                for a, b in oc.static(oc.ndrange(3, 3)):
                    x[oc.min(oc.max(i + a - 1, 0), 255), oc.min(oc.max(j + b - 1, 0), 255)] += 1.0

        go()
        return go

    shared, flushed = sums(make(True))
    assert shared >= 9 and flushed <= 8, "no update is asked for where it goes"
    assert sums(make(False))[0] == 0


@pytest.mark.no_device
def test_code_outside_of_the_rule_is_what_it_was():
    x, y = oc.field(oc.f32, 4096), oc.field(oc.f32, 4096)
    which = oc.field(oc.i32, 4096)

    def reads(hint):
        @oc.kernel
        def go():
            if oc.static(hint):
                oc.block_local(x)
            for i, k in oc.ndrange(4095, 8):
                x[i + 1] += x[i] * k

        return go

    def takes(hint):
        @oc.kernel
        def go():
            if oc.static(hint):
                oc.block_local(x)
            for i, k in oc.ndrange(4095, 8):
                y[k] = oc.atomic_add(x[i + 1], 1.0)

        return go

    def anywhere(hint):
        @oc.kernel
        def go():
            if oc.static(hint):
                oc.block_local(x)
            for i, k in oc.ndrange(4096, 8):
                x[which[i]] += k

        return go

    def extremes(hint):
        @oc.kernel
        def go():
            if oc.static(hint):
                oc.block_local(x)
            for i, k in oc.ndrange(4095, 8):
                oc.atomic_max(x[i + 1], 1.0 * k)

        return go

    def alone(hint):
        @oc.kernel
        def go():
            if oc.static(hint):
                oc.block_local(x)
            for i in range(4095):
                x[i + 1] += y[i]

        return go

    def gathered(hint):
        @oc.kernel
        def go():
            if oc.static(hint):
                oc.block_local(x)
            for i in range(1, 4095):
                x[i + 1] += y[i]
                x[i - 1] += y[i]

        return go

    for make in (reads, takes, anywhere, extremes, alone, gathered):
        texts = []
        for hint in (False, True):
            kernel = make(hint)
            kernel()
            texts.append(kernel.dump("ptx", capability=90))
        assert texts[0] == texts[1], make.__name__
