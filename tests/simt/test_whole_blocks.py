"""How many iterations a loop has whose threads do something together: whole blocks, or whole subgroups where no more meet."""

import numpy as np
import pytest

import octants as oc
from octants.simt import block, subgroup


@pytest.mark.parametrize("threads, count", [(None, 32), (None, 160), (64, 96), (256, 32), (48, 96), (16, 48)])
def test_whole_subgroups_do_where_lanes_only_exchange(arch, threads, count):
    @oc.kernel
    def go(y: oc.types.NDArray[oc.i32, 2], n: oc.i32):
        oc.loop_config(block_dim=threads)
        for i in range(n):
            y[0, i] = subgroup.shuffle_xor(i, 1)
            y[1, i] = subgroup.invocation_id()
            y[2, i] = block.thread_idx()

    y = np.full((3, count), -1, np.int32)
    go(y, count)
    i, size = np.arange(count), threads or 128
    assert (y == [i ^ 1, i % size % 32, i % size]).all()


@pytest.mark.parametrize("threads, count, whole", [(64, 80, 32), (48, 64, 48), (16, 40, 16)])
def test_parts_of_subgroups_are_refused(arch, threads, count, whole):
    @oc.kernel
    def go(n: oc.i32, y: oc.types.NDArray[oc.i32, 1]):
        oc.loop_config(block_dim=threads)
        for i in range(n):
            y[i] = subgroup.shuffle_xor(i, 1)

    with pytest.raises(
        (RuntimeError, ValueError), match=f"{count} iterations are no whole number of blocks of {whole} threads"
    ):
        go(count, np.zeros(count, np.int32))


@pytest.mark.parametrize("count", [60, 64])
def test_bounds_that_a_kernel_reads(arch, count):
    @oc.kernel
    def go(n: oc.types.NDArray[oc.i32, 1], y: oc.types.NDArray[oc.i32, 1]):
        oc.loop_config(block_dim=32)
        for i in range(n[0], n[1]):
            y[i - 10] = block.sync_count_nonzero(i % 2)

    n, y = np.array([10, 10 + count], np.int32), np.zeros(64, np.int32)
    if count == 64:
        go(n, y)
        assert (y == 16).all()
        return
    with pytest.raises(
        (RuntimeError, AssertionError), match="60 iterations are no whole number of blocks of 32 threads"
    ):
        go(n, y)
        oc.sync()
