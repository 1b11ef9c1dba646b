"""Shared arrays that are not in use at the same time share memory, and others do not."""

import inspect

import numpy as np
import pytest

import octants as oc
from octants.simt import block

#: Threads of a block, and rows of an array: 64 KiB of memory, of which a block has 227.
THREADS, ROWS = 64, 256


@oc.func
def turned(x, number: oc.template()):
    """What the next thread has, by way of an array whose every row is written."""
    t = block.thread_idx()
    line = block.SharedArray((ROWS, THREADS), oc.i32)
    for row in range(ROWS):
        line[row, t] = x + row
    block.sync()
    x = line[number, (t + 1) % THREADS] - number
    block.sync()
    return x


def test_eight_arrays_one_after_the_other(arch):
    @oc.kernel
    def go(x: oc.types.NDArray[oc.i32, 1]):
        oc.loop_config(block_dim=THREADS)
        for i in range(2 * THREADS):
            v = x[i]
            for number in oc.static(range(8)):
                v = turned(v, 8 * number)
            x[i] = v

    x = np.arange(2 * THREADS, dtype=np.int32) ** 2
    wanted = np.roll(x.reshape(2, THREADS), -8, axis=1).reshape(-1)
    go(x)
    assert (x == wanted).all()


def test_arrays_in_branches_and_loops(arch):
    @oc.kernel
    def go(x: oc.types.NDArray[oc.i32, 1], rounds: oc.i32):
        oc.loop_config(block_dim=THREADS)
        for i in range(4 * THREADS):
            t, number = i % THREADS, i // THREADS
            v = x[i]
            if number % 2 == 0:
                left = block.SharedArray((512, THREADS), oc.i32)
                left[511, t] = v
                block.sync()
                v = left[511, THREADS - 1 - t]
                block.sync()
            else:
                right = block.SharedArray((3, 128, THREADS), oc.i32)
                right[2, 127, t] = v
                block.sync()
                v = right[2, 127, t ^ 1]
                block.sync()
            for _ in range(rounds):
                line = block.SharedArray((512, THREADS), oc.i32)
                line[0, t] = v
                block.sync()
                v = line[0, (t + 1) % THREADS]
                block.sync()
            x[i] = v

    x = np.random.default_rng(0).integers(0, 1000, 4 * THREADS).astype(np.int32)
    wanted = x.reshape(4, THREADS).copy()
    wanted[::2] = wanted[::2, ::-1]
    wanted[1::2] = wanted[1::2].reshape(2, THREADS // 2, 2)[:, :, ::-1].reshape(2, THREADS)
    go(x, 3)
    assert (x.reshape(4, THREADS) == np.roll(wanted, -3, axis=1)).all()


def test_what_is_still_read_is_kept(arch):
    """The second array does not fit where the first one is, though nobody writes that any more."""

    @oc.kernel
    def go(x: oc.types.NDArray[oc.i32, 1]):
        oc.loop_config(block_dim=THREADS)
        for i in range(THREADS):
            first = block.SharedArray(THREADS, oc.i32)
            first[i] = x[i]
            block.sync()
            second = block.SharedArray(THREADS, oc.i32)
            second[i] = 7
            block.sync()
            x[i] = first[THREADS - 1 - i] + second[(i + 1) % THREADS]

    x = np.arange(THREADS, dtype=np.int32)
    go(x)
    assert (x == np.arange(THREADS)[::-1] + 7).all()


def too_large(function):
    """The line that is pointed at, where it has a ``# here``."""
    source, first = inspect.getsourcelines(function)
    lines = [first + at for at, text in enumerate(source) if "# here" in text]
    with pytest.raises(oc.OctantsCompilationError) as raised:
        oc.kernel(function)()
    text = str(raised.value)
    assert [line for line in lines if f"{__file__}:{line}:" in text] == lines, text
    return text


def test_without_a_barrier_they_do_not(arch):
    def behind_each_other():
        oc.loop_config(block_dim=32)
        for i in range(32):
            a = block.SharedArray((40, 1024), oc.i32)
            a[0, i] = i
            b = block.SharedArray((30, 1024), oc.i32)  # here
            b[0, i] = i

    def around_a_loop():
        oc.loop_config(block_dim=32)
        for i in range(32):
            for _ in range(4):
                a = block.SharedArray((40, 1024), oc.i32)
                a[0, i] = i
                block.sync()
                b = block.SharedArray((30, 1024), oc.i32)  # here
                b[0, i] = a[1, i]

    def sides_with_a_barrier_that_no_thread_may_reach():
        oc.loop_config(block_dim=64)
        for i in range(64):
            rounds = oc.cast(oc.random() * 2, oc.i32)
            if i < 32:
                a = block.SharedArray((40, 1024), oc.i32)
                a[0, i] = i
                for _ in range(rounds):
                    block.sync()
            else:
                b = block.SharedArray((30, 1024), oc.i32)  # here
                b[0, i] = i
                for _ in range(rounds):
                    block.sync()

    for go in (behind_each_other, around_a_loop, sides_with_a_barrier_that_no_thread_may_reach):
        text = too_large(go)
        assert (
            "a block has 232448 bytes of shared memory on this device, and its arrays take 286720, 122880 of them here"
            in text
        )
        assert "`block.sync()` between the last use of one array and the first of another" in text.replace(
            "\n", " "
        ).replace("  ", "")


def test_more_than_a_block_has_without_asking(arch):
    """GPUs give a block 48 KiB, and more if they are asked."""

    @oc.kernel
    def go(x: oc.types.NDArray[oc.i32, 1]):
        oc.loop_config(block_dim=THREADS)
        for i in range(2 * THREADS):
            t = i % THREADS
            a = block.SharedArray((850, THREADS), oc.i32)
            for row in range(850):
                a[row, t] = x[i] + row
            block.sync()
            x[i] = a[849, THREADS - 1 - t] + a[0, t]

    x = np.arange(2 * THREADS, dtype=np.int32)
    wanted = x + x.reshape(2, THREADS)[:, ::-1].reshape(-1) + 849
    go(x)
    assert (x == wanted).all()
