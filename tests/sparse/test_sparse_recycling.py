"""Cells that are given up: by all trees, by loops, and made again in their memory."""

import pytest
from devices import INTERPRETED
from sparse_kernels import count_of

import octants as oc

pytestmark = [pytest.mark.host_access]


@pytest.fixture(autouse=True)
def on_every_device(arch):
    """No test of this file leaves a device out."""


def test_the_root_gives_up_the_cells_of_all_trees():
    x = oc.field(oc.i32)
    oc.root.pointer(oc.i, 4).dense(oc.i, 2).place(x)
    x[3] = 5
    y, builder = oc.field(oc.i32), oc.FieldsBuilder()
    builder.bitmasked(oc.i, 4).place(y)
    builder.finalize()
    y[1] = 4
    oc.root.deactivate_all()
    assert count_of(x) == count_of(y) == 0
    assert not x.to_numpy().any()


def test_memory_is_bounded_over_many_rebuilds():
    x, y = oc.field(oc.f32), oc.field(oc.i32)
    outer = oc.root.pointer(oc.i, 16)
    inner = outer.pointer(oc.i, 4)
    inner.dense(oc.i, 4).place(x)
    lists = outer.dynamic(oc.j, 100, chunk_size=2)
    lists.place(y)

    @oc.kernel
    def build(step: oc.i32):
        for i in range(64):
            x[(i * 4 + step * 16) % 256] = 1.0
            oc.append(lists, [i % 16], i)

    @oc.kernel
    def drop():
        for i in outer:
            oc.deactivate(outer, [i])

    most = [0, 0, 0]
    for step in range(40):
        build(step)
        assert x.to_numpy().sum() == 64 and y.to_numpy().sum() == 64 * 63 // 2
        found = [node._num_dynamically_allocated for node in (outer, inner, lists)]
        if step == 0:
            most = found
        assert found == most
        if step % 2:
            drop()
        else:
            oc.deactivate_all_snodes()
        assert count_of(x) == 0 and count_of(y) == 0
        assert not x.to_numpy().any() and not y.to_numpy().any()


def test_a_task_makes_again_what_it_gave_up():
    x, y = oc.field(oc.i32), oc.field(oc.i32)
    blocks = oc.root.pointer(oc.i, 8)
    blocks.dense(oc.i, 2).place(x)
    lists = oc.root.dense(oc.i, 8).dynamic(oc.j, 6, chunk_size=2)
    lists.place(y)

    @oc.kernel
    def renew(value: oc.i32):
        for i in range(8):
            oc.deactivate(blocks, i)
            x[2 * i] = value
            oc.deactivate(lists, i)
            for n in range(6):
                oc.append(lists, i, value + n)

    for value in range(1, 4):
        renew(value)
        assert x.to_numpy().tolist() == [value, 0] * 8
        assert y.to_numpy().tolist() == [list(range(value, value + 6))] * 8
    # Those that were given up in the last task, and those that were made in it.
    assert blocks._num_dynamically_allocated == 16


def test_a_cell_that_is_given_up_in_an_inner_loop_is_made_again():
    x, y, z = oc.field(oc.i32), oc.field(oc.i32), oc.field(oc.i32)
    cells, bits, blocks = oc.root.pointer(oc.i, 4), oc.root.bitmasked(oc.i, 4), oc.root.pointer(oc.i, 4)
    cells.place(x)
    bits.place(y)
    blocks.dense(oc.i, 2).place(z)

    @oc.func
    def drop(i):
        oc.deactivate(blocks, i // 2)

    @oc.kernel
    def assign():
        for i in x:
            for n in range(2):
                x[i] = 7
                if n == 0:
                    oc.deactivate(cells, i)

    @oc.kernel
    def add():
        for i in y:
            n = 0
            while n < 2:
                y[i] += 7
                if n == 0:
                    oc.deactivate(bits, i)
                n += 1

    @oc.kernel
    def add_and_call():
        for i in z:
            for n in range(2):
                z[i] += i + 1
                if n == 0 and i % 2 == 0:
                    drop(i)

    x[1], y[2], z[4] = 1, 1, 1
    assign()
    add()
    add_and_call()
    assert x.to_numpy().tolist() == [0, 7, 0, 0] and y.to_numpy().tolist() == [0, 0, 7, 0]
    assert z[4] == 5 and oc.sparse.usage(z) == 0.25


def test_kernels_on_two_streams_give_up_cells_of_one_tree(arch):
    """Each clears its own: no slot is given out twice, and what is made anew is zero."""
    n = 64 if arch in INTERPRETED else 2048
    rounds = 3 if arch in INTERPRETED else 30
    x, given_up, tree = oc.field(oc.i32), oc.field(oc.i32, shape=n), oc.FieldsBuilder()
    cells = tree.pointer(oc.i, n)
    cells.place(x)
    tree.finalize()

    @oc.kernel
    def give_up(first: oc.i32):
        for i in range(n // 2):
            if oc.is_active(cells, 2 * i + first):
                oc.deactivate(cells, 2 * i + first)
                given_up[2 * i + first] += 1

    @oc.kernel
    def make():
        for i in range(n):
            x[i] += i + 1

    streams = [oc.create_stream() for _ in range(2)]
    for _ in range(rounds):
        make()
        assert [x[i] for i in range(0, n, 37)] == [i + 1 for i in range(0, n, 37)]
        oc.sync()
        for first, stream in enumerate(streams):
            give_up(first, qd_stream=stream)
        oc.sync(all=True)
    make()
    oc.sync()
    assert x.to_numpy().tolist() == list(range(1, n + 1))
    assert (given_up.to_numpy() == rounds).all()
