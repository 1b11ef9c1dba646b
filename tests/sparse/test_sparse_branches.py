"""Sparse trees inside the branches of `stream_parallel`: finding, making and recycling cells belong to their branch."""

import numpy as np
import pytest
from devices import INTERPRETED

import octants as oc

pytestmark = pytest.mark.host_access

CELLS = 4


def size(arch):
    """Blocks of the trees, and how often a branch repeats a step whose order with another matters."""
    return (16, 4) if arch in INTERPRETED else (1024, 200)


def tree(blocks):
    value = oc.field(oc.i32)
    block = oc.root.pointer(oc.i, blocks)
    block.dense(oc.i, CELLS).place(value)
    return value, block


def test_a_loop_visits_what_its_branch_has_made_before(arch):
    blocks, steps = size(arch)
    (x, _), (y, _) = tree(blocks), tree(blocks)
    sums = oc.field(oc.i32, 2)

    @oc.kernel
    def run():
        with oc.stream_parallel():
            for i in range(blocks * CELLS):
                late = i
                for _ in range(steps):
                    late = (late * 1664525 + 1013904223) % 1024
                if i % 8 < 4:
                    x[i] = oc.select(late < 0, late, i)
            for i in x:
                sums[0] += x[i] + 1
        with oc.stream_parallel():
            for i in range(blocks * CELLS):
                if i % 8 >= 4:
                    y[i] = i
            for i in y:
                sums[1] += y[i] + 1

    run()
    index = np.arange(blocks * CELLS)
    assert sums.to_numpy().tolist() == [(index[index % 8 < 4] + 1).sum(), (index[index % 8 >= 4] + 1).sum()]


def test_two_branches_visit_the_same_tree(arch):
    blocks, _ = size(arch)
    x, _ = tree(blocks)
    counts = oc.field(oc.i32, 2)

    @oc.kernel
    def run():
        with oc.stream_parallel():
            for i in x:
                counts[0] += x[i]
        with oc.stream_parallel():
            for i in x:
                counts[1] += x[i]

    for i in range(0, blocks, 3):
        x[i * CELLS] = 5
    for round_ in range(1, 4):
        run()
        assert counts.to_numpy().tolist() == [round_ * 5 * len(range(0, blocks, 3))] * 2


def test_cells_given_up_in_a_branch_are_free_for_its_next_loop(arch):
    blocks, _ = size(arch)
    (x, b), (y, c) = tree(blocks), tree(blocks)
    seen = oc.field(oc.i32, 2)

    @oc.kernel
    def run(round_: oc.i32):
        with oc.stream_parallel():
            for i in range(blocks):
                x[i * CELLS] = round_
            for i in range(blocks):
                if i % 2 == 0:
                    oc.deactivate(b, i)
            for i in range(blocks):
                seen[0] += oc.is_active(b, i) * (x[i * CELLS] + x[i * CELLS + 1])
            for i in range(blocks):
                oc.deactivate(b, i)
        with oc.stream_parallel():
            for i in range(blocks):
                y[i * CELLS + 1] = round_
            for i in range(blocks):
                oc.deactivate(c, i)
            for i in range(blocks):
                seen[1] += y[i * CELLS + 1] + oc.is_active(c, i)

    expected = 0
    for round_ in range(1, 31):
        run(round_)
        expected += round_ * (blocks // 2)
        assert seen.to_numpy().tolist() == [expected, 0]
    if text := run.dump("tasks"):
        body = text[text.index("\nkernel ") + 1 :].splitlines()[1:]
        outside = [line.split() for line in body if line.startswith("  ") and line[2] not in " }"]
        assert [words[0] for words in outside if words[-1] != "temp" and "const" not in words] == ["fork", "return"]


def test_statements_without_a_loop_keep_their_place_in_a_branch(arch):
    x = oc.field(oc.i32)
    list_ = oc.root.dynamic(oc.i, 64, chunk_size=8)
    list_.place(x)
    y, b = tree(8)
    seen = oc.field(oc.i32, 4)

    @oc.kernel
    def run():
        with oc.stream_parallel():
            oc.append(list_, [], 7)
            seen[0] = oc.length(list_, [])
            for i in x:
                seen[1] += x[i]
            oc.deactivate(list_, [])
        with oc.stream_parallel():
            oc.activate(b, 3)
            for i in y:
                seen[2] += 1
            oc.deactivate(b, 3)
            seen[3] = oc.is_active(b, 3)

    for round_ in range(1, 4):
        run()
        assert seen.to_numpy().tolist() == [1, 7 * round_, CELLS * round_, 0]


def test_branches_make_cells_of_one_tree_at_once(arch):
    blocks, steps = size(arch)
    x = oc.field(oc.i32)
    block = oc.root.pointer(oc.i, blocks)
    block.dynamic(oc.j, 4 * steps, chunk_size=4).place(x)
    list_ = x.parent()

    @oc.kernel
    def run():
        with oc.stream_parallel():
            for i in range(blocks * steps):
                oc.append(list_, i % blocks, 1 + i // blocks)
        with oc.stream_parallel():
            for i in range(blocks * steps):
                oc.append(list_, (i * 7 + 3) % blocks, -1 - i // blocks)

    lengths, totals = oc.field(oc.i32, blocks), oc.field(oc.i32, blocks)

    @oc.kernel
    def count():
        for i in range(blocks):
            lengths[i] = oc.length(list_, i)
        for i, j in x:
            totals[i] += x[i, j]

    run()
    count()
    assert (lengths.to_numpy() == 2 * steps).all()
    assert (totals.to_numpy() == 0).all()


def test_one_branch_gives_up_cells_of_a_tree_that_another_uses(arch):
    blocks, _ = size(arch)
    x, b = tree(blocks)
    read = oc.field(oc.i32, ())

    @oc.kernel
    def run(round_: oc.i32):
        with oc.stream_parallel():
            for i in range(blocks):
                if i % 2 == 0:
                    oc.deactivate(b, i)
        with oc.stream_parallel():
            for i in range(blocks):
                if i % 2 == 1:
                    x[i * CELLS] += round_
            for i in range(blocks):
                if i % 2 == 1:
                    read[None] += x[i * CELLS]

    @oc.kernel
    def refill():
        for i in range(blocks):
            if i % 2 == 0:
                x[i * CELLS + 1] = 9

    held, expected = 0, 0
    for round_ in range(1, 11):
        refill()
        run(round_)
        held += round_
        expected += held * (blocks // 2)
        values = x.to_numpy().reshape(blocks, CELLS)
        assert (values[0::2] == 0).all() and (values[1::2, 0] == held).all() and (values[:, 1:] == 0).all()
        assert read[None] == expected
