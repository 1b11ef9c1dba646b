"""What a block keeps does not depend on the stack of the thread that runs it."""

import threading

import numpy as np
import pytest

import octants as oc
from octants.simt import block


def test_a_thread_with_a_small_stack(arch):
    @oc.kernel
    def go(x: oc.types.NDArray[oc.i32, 1]):
        oc.loop_config(block_dim=32)
        for i in range(64):
            t = i % 32
            s = block.SharedArray((1600, 32), oc.i32)
            for k in range(1600):
                s[k, t] = x[i] + k
            block.sync()
            x[i] = s[1599, 31 - t]

    x = np.arange(64, dtype=np.int32)
    wanted = x.reshape(2, 32)[:, ::-1].reshape(-1) + 1599
    # Compiling takes more.
    go(np.zeros(64, np.int32))
    before = threading.stack_size(128 << 10)
    try:
        thread = threading.Thread(target=go, args=(x,))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert (x == wanted).all()


@pytest.mark.filterwarnings("ignore:.*takes long to compile")
def test_many_variables_over_a_barrier(arch):
    """32 MiB of them."""
    if arch == "reference":
        pytest.skip("the interpreter takes minutes for it")
    rows = 1024

    @oc.kernel
    def go(x: oc.types.NDArray[oc.f64, 1]):
        oc.loop_config(block_dim=1024)
        for i in range(rows):
            total = oc.f64(0.0)
            for _ in oc.static(range(16)):
                v = oc.Vector.zero(oc.f64, 256)
                for j in range(256):
                    v[j] = x[i] + j
                block.sync()
                total += v[i % 256]
            x[i] = total

    x = np.arange(rows, dtype=np.float64)
    go(x)
    i = np.arange(rows)
    assert (x == 16 * (i + i % 256)).all()
