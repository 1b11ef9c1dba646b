"""Sparse nodes under many threads, and when their memory ends."""

import ctypes

import numpy as np
import pytest

import octants as oc

#: Bytes of the allocator's state for one pool, and where it says how many slots have memory and may ever have some (octants_ir::sparse).
STATE_BYTES, CAPACITY, LIMIT = 256, 192, 200


def test_threads_that_make_and_append_at_once_lose_nothing():
    x, numbers = oc.field(oc.i32), oc.field(oc.i32)
    outer = oc.root.pointer(oc.ij, 64)
    inner = outer.pointer(oc.ij, 4)
    inner.place(x)
    lists = oc.root.pointer(oc.i, 8).dynamic(oc.j, 1 << 16, chunk_size=4)
    lists.place(numbers)
    n = 100_000

    @oc.kernel
    def scatter(seed: oc.i32):
        for k in range(n):
            h = (k * 1103515245 + seed * 12345) & 0x7FFFFFFF
            x[(h >> 3) % 256, (h >> 13) % 256] += 1
            oc.append(lists, [h % 8], k + 1)

    for seed in range(4):
        scatter(seed)
        assert x.to_numpy().sum() == n
        found = np.sort(numbers.to_numpy().ravel())[-n:]
        assert np.array_equal(found, np.arange(1, n + 1))
        outer.deactivate_all()
        lists.deactivate_all()
    assert outer._num_dynamically_allocated <= 64**2
    assert inner._num_dynamically_allocated <= 256**2


@pytest.mark.host_devices("it writes the tree's memory from the host")
def test_a_pool_without_memory_is_an_error_and_stays_usable(arch):
    x = oc.field(oc.i32)
    blocks = oc.root.pointer(oc.i, 4096)
    blocks.dense(oc.i, 4).place(x)
    x[0] = 1
    # The root's cell comes after the state of both pools; the second one is that of the blocks.
    state = x._addresses()[0] - 2 * STATE_BYTES
    for word in (CAPACITY, LIMIT):
        number = ctypes.c_int32.from_address(state + STATE_BYTES + word)
        assert number.value >= 4096
        number.value = 100

    @oc.kernel
    def fill(count: oc.i32):
        for i in range(count):
            x[i] = i + 1

    with pytest.raises(RuntimeError, match="out of memory: the pool of a pointer node is full"):
        fill(4 * 4096)
    found = x.to_numpy()
    assert np.all((found == 0) | (found == np.arange(1, 4 * 4096 + 1)))
    assert (found.reshape(-1, 4) != 0).any(axis=1).sum() <= 100 == blocks._num_dynamically_allocated
    blocks.deactivate_all()
    assert not x.to_numpy().any()
    fill(400)
    assert x.to_numpy().sum() == 400 * 401 // 2 and blocks._num_dynamically_allocated == 100
