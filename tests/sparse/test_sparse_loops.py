"""Loops over sparse nodes: what they visit, cells that their iterations share, and races."""

import numpy as np
import pytest
from sparse_kernels import count_of

import octants as oc

pytestmark = [pytest.mark.host_access]


@pytest.fixture(autouse=True)
def on_every_device(arch):
    """No test of this file leaves a device out."""


def test_a_loop_does_not_visit_what_it_makes():
    x, y, z = oc.field(oc.i32), oc.field(oc.i32), oc.field(oc.i32)
    oc.root.pointer(oc.i, 64).dense(oc.i, 2).place(x)
    oc.root.dense(oc.i, 8).bitmasked(oc.i, 16).place(y)
    lists = oc.root.dense(oc.i, 4).dynamic(oc.j, 64, chunk_size=4)
    lists.place(z)

    @oc.kernel
    def begin():
        for i in range(3):
            x[i * 40] = 1
            y[i * 40] = 1
            oc.append(lists, [i], 1)

    @oc.kernel
    def grow():
        for i in x:
            x[(i + 2) % 128] += 1
        for i in y:
            y[(i + 1) % 128] += 1
        for i, j in z:
            oc.append(lists, [i], 1)
            oc.append(lists, [3], 1)

    begin()
    grow()
    assert (count_of(x), count_of(y), count_of(z)) == (12, 6, 9)
    assert x.to_numpy().sum() == 3 + 6 and y.to_numpy().sum() == 3 + 3
    grow()
    assert (count_of(x), count_of(y), count_of(z)) == (18, 9, 27)


def test_a_cell_that_many_iterations_write_first_is_made_once():
    x = oc.field(oc.i32)
    outer = oc.root.pointer(oc.ij, 16)
    inner = outer.pointer(oc.ij, 4)
    inner.dense(oc.ij, 4).place(x)
    n = 4096

    @oc.kernel
    def touch():
        for k in range(n):
            x[(k * 7) % 256, (k * 13) % 256] += 1

    touch()
    expected = np.zeros((256, 256), np.int32)
    k = np.arange(n)
    np.add.at(expected, ((k * 7) % 256, (k * 13) % 256), 1)
    assert np.array_equal(x.to_numpy(), expected)
    blocks = expected.reshape(16, 16, 16, 16).any(axis=(1, 3)).sum()
    assert outer._num_dynamically_allocated == blocks
    assert inner._num_dynamically_allocated == expected.reshape(64, 4, 64, 4).any(axis=(1, 3)).sum()


def test_loops_in_order_and_in_branches():
    x, y = oc.field(oc.i32), oc.field(oc.i32)
    block = oc.root.pointer(oc.i, 32)
    block.dense(oc.i, 4).place(x)
    oc.root.pointer(oc.i, 32).dense(oc.i, 4).place(y)
    order = oc.field(oc.i32, shape=4)

    @oc.kernel
    def first():
        oc.loop_config(serialize=True)
        for i in range(16):
            x[i * 8] = 1
        total = 0
        oc.loop_config(serialize=True)
        for i in x:
            total += x[i]
            if total == 3:
                break
        order[0] = total
        for _ in range(1):
            for i in x:
                order[1] += x[i]

    @oc.kernel
    def both():
        with oc.stream_parallel():
            for i in x:
                x[i] += 1
                if i % 16 == 0:
                    oc.deactivate(block, i // 4)
            for i in x:
                order[2] += 1
        with oc.stream_parallel():
            for i in range(128):
                y[i] = i
            for i in y:
                order[3] += 1

    first()
    assert order.to_numpy().tolist()[:2] == [3, 16]
    both()
    assert order.to_numpy().tolist() == [3, 16, 32, 128]
    assert block._num_dynamically_allocated == 16
    first()
    assert block._num_dynamically_allocated == 16 and count_of(x) == 64


def test_a_loop_over_a_node_of_one_cell_visits_it():
    x, y = oc.field(oc.i32), oc.field(oc.i32)
    one = oc.root.bitmasked(oc.i, 1)
    one.place(x)
    oc.root.pointer(oc.i, 1).bitmasked(oc.j, 1).place(y)

    @oc.kernel
    def run(other: oc.i32):
        for i in x:
            x[(i + other) % 1] += 1
        for i, j in y:
            y[(i + other) % 1, j] += 1

    run(0)
    assert x[0] == 0 and y[0, 0] == 0
    x[0], y[0, 0] = 5, 6
    for _ in range(2):
        run(0)
    assert (x[0], y[0, 0]) == (7, 8)


def test_threads_that_set_the_same_are_no_race(recwarn):
    x = oc.field(oc.i32)
    oc.root.bitmasked(oc.i, 1).dense(oc.i, 8).place(x)
    flag = oc.field(oc.i32, shape=())

    @oc.kernel
    def fill():
        for i in range(8):
            x[i] = i
            if flag[None] == 0:
                flag[None] = 1

    fill()
    assert flag[None] == 1 and x.to_numpy().tolist() == list(range(8))
    assert not [told for told in recwarn if "OC1007" in str(told.message)]

    @oc.kernel
    def number():
        for i in range(8):
            if flag[None] == 0:
                flag[None] = i

    with pytest.warns(UserWarning, match="OC1007"):
        number()


def test_a_loop_that_makes_cells_below_the_only_one_of_a_node_is_no_race(recwarn):
    x, seen = oc.field(oc.i32), oc.field(oc.i32, 8)
    bits = oc.root.bitmasked(oc.i, 1).bitmasked(oc.i, 8)
    bits.place(x)

    @oc.kernel
    def spread() -> oc.i32:
        count = 0
        for i in bits:
            seen[i] += 1
            count += 1
            oc.activate(bits, i * 2 % 8)
        return count

    assert spread() == 0
    x[3] = 5
    assert [spread() for _ in range(4)] == [1, 2, 3, 4]
    assert seen.to_numpy().tolist() == [1, 0, 0, 4, 2, 0, 3, 0]
    assert not [told for told in recwarn if "OC1007" in str(told.message)]


def test_assignments_that_reduce_are_atomic():
    x, y = oc.field(oc.i32), oc.field(oc.f32)
    oc.root.pointer(oc.i, 8).dense(oc.i, 4).place(x)
    oc.root.pointer(oc.ij, 4).bitmasked(oc.ij, 2).place(y)
    n = 400_000 if oc.cfg.arch in (oc.cpu, oc.cuda) else 1000

    @oc.kernel
    def reduce(k: oc.i32):
        for i in range(n):
            x[0] = x[0] + 1
            x[k] = x[k] + 2
            x[5] = 2 + x[5]
            x[9] = x[9] - i % 3
            x[17] = max(x[17], i)
            y[3, 1] = y[3, 1] + 1.0

    @oc.kernel
    def in_order() -> oc.i32:
        x[30] = x[30] + 5
        x[30] = x[30] * x[30]
        x[30] = 100 - x[30]
        return x[30]

    reduce(13)
    assert [x[k] for k in (0, 5, 9, 13, 17)] == [n, 2 * n, -sum(i % 3 for i in range(n)), 2 * n, n - 1]
    assert y[3, 1] == n
    assert in_order() == 75


def test_neighbours_that_share_a_cell_see_it_made_by_the_first():
    x, y, was = oc.field(oc.i32), oc.field(oc.f32), oc.field(oc.i32, 8192)
    blocks = oc.root.pointer(oc.i, 2048)
    blocks.dense(oc.i, 4).place(x)
    oc.root.pointer(oc.ij, (8, 128)).dense(oc.ij, (2, 16)).place(y)

    @oc.kernel
    def ask_first():
        oc.loop_config(serialize=True)
        for k in range(8192):
            was[k] = oc.is_active(blocks, [k // 4])
            x[k] = k

    @oc.kernel
    def fill(a: oc.f32):
        for k in range(8192):
            x[k] += 1
        for i, j in oc.ndrange(16, 2048):
            y[i, j] = a + i * 2048 + j

    fill(0.5)
    assert (x.to_numpy() == 1).all()
    assert (y.to_numpy() == 0.5 + np.arange(16 * 2048, dtype=np.float32).reshape(16, 2048)).all()
    assert count_of(x) == 8192 and count_of(y) == 16 * 2048
    blocks.deactivate_all()
    assert count_of(x) == 0
    ask_first()
    assert (was.to_numpy() == (np.arange(8192) % 4 != 0)).all()
    assert (x.to_numpy() == np.arange(8192)).all()


def test_neighbours_in_other_blocks_are_found_from_all_ends_of_a_row():
    x, y = oc.field(oc.i32), oc.field(oc.i32)
    oc.root.pointer(oc.ij, 12).dense(oc.ij, 16).place(x, y)
    rng = np.random.default_rng(4)
    there = np.kron(rng.random((12, 12)) < 0.6, np.ones((16, 16), dtype=bool))
    there[:16] = there[-16:] = there[:, :16] = there[:, -16:] = False
    values = np.where(there, rng.integers(1, 1000, there.shape), 0).astype(np.int32)

    @oc.kernel
    def begin(values: oc.types.ndarray(dtype=oc.i32, ndim=2)):
        for i, j in values:
            if values[i, j] > 0:
                x[i, j] = values[i, j]

    @oc.kernel
    def step() -> oc.i32:
        total = 0
        for i, j in x:
            y[i, j] = x[i - 1, j] + 2 * x[i + 1, j] + 4 * x[i, j - 1] + 8 * x[i, j + 1] - x[i, j - 3]
            total += x[i, j + 2]
        return total

    begin(values)
    total = step()
    away = {(a, b): np.roll(values, (-a, -b), (0, 1)) for a, b in [(-1, 0), (1, 0), (0, -1), (0, 1), (0, -3), (0, 2)]}
    expected = away[-1, 0] + 2 * away[1, 0] + 4 * away[0, -1] + 8 * away[0, 1] - away[0, -3]
    assert (y.to_numpy() == np.where(there, expected, 0)).all()
    assert total == away[0, 2][there].sum()
