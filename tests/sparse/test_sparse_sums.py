"""Sums over the short rows of sparse trees are as accurate as over one long row."""

import numpy as np
import pytest

import octants as oc

SIDE = 2048


@pytest.mark.host_devices("a GPU's threads sum a few numbers each")
@pytest.mark.parametrize("block", [4, 8, 32])
def test_sums_over_small_blocks_are_accurate(block):
    oc.init(arch=oc.cpu, cpu_max_num_threads=1, log_level="error")
    x, total = oc.field(oc.f32), oc.field(oc.f32, shape=())
    oc.root.pointer(oc.ij, (SIDE // block, SIDE // block)).dense(oc.ij, (block, block)).place(x)

    @oc.kernel
    def fill():
        for i, j in oc.ndrange(SIDE, SIDE):
            x[i, j] = oc.cast((i * 31 + j * 17) % 1000, oc.f32) * 0.001 + 0.1

    @oc.kernel
    def sum_up():
        for i, j in x:
            total[None] += x[i, j]

    @oc.kernel
    def several() -> oc.types.vector(3, oc.f32):
        plain = 0.0
        product = 1.0
        count = 0
        for i, j in x:
            plain += x[i, j]
            product *= 1.0
            count += 1
        return oc.Vector([plain, product, oc.cast(count, oc.f32)])

    fill()
    sum_up()
    exact = x.to_numpy().astype(np.float64).sum()
    assert total[None] == pytest.approx(exact, rel=1e-6)
    plain, product, count = several()
    assert plain == pytest.approx(exact, rel=1e-6)
    assert (product, count) == (1, SIDE * SIDE)
