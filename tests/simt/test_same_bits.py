"""What lanes add up of each other they have with the same bits, with ``fast_math``, too: no lane takes a product of its own into the sum."""

import numpy as np
import pytest

import octants as oc
from octants.simt import subgroup

N = 1024


@oc.real_func
def product(a: oc.f32, b: oc.f32) -> oc.f32:
    return a * b


def carried(x: oc.types.NDArray[oc.f32, 1], y: oc.types.NDArray[oc.f32, 1]):
    oc.loop_config(block_dim=32)
    for i in range(N):
        p = 1.0
        for k in range(3):
            p *= x[(i + k) % N]
        y[i] = subgroup.reduce_all_add_tiled(p, 1)


def narrow(x: oc.types.NDArray[oc.f32, 1], y: oc.types.NDArray[oc.f32, 1]):
    oc.loop_config(block_dim=32)
    for i in range(N):
        y[i] = subgroup.reduce_all_add_tiled(oc.cast(x[i], oc.f16) * oc.cast(x[N - 1 - i], oc.f16), 1)


def called(x: oc.types.NDArray[oc.f32, 1], y: oc.types.NDArray[oc.f32, 1]):
    oc.loop_config(block_dim=64)
    for i in range(N):
        y[i] = subgroup.reduce_all_add(product(x[i], x[N - 1 - i]))


def chosen(x: oc.types.NDArray[oc.f32, 1], y: oc.types.NDArray[oc.f32, 1]):
    oc.loop_config(block_dim=32)
    for i in range(N):
        v = 0.25
        if x[i] > 0:
            v = x[i] * x[N - 1 - i]
        y[i] = subgroup.reduce_all_add(v)


def computed(x: oc.types.NDArray[oc.f32, 1], y: oc.types.NDArray[oc.f32, 1]):
    oc.loop_config(block_dim=32)
    for i in range(N):
        y[i] = subgroup.reduce_all_add_tiled(oc.cast(i % 32, oc.f32) * 0.1, 5)


def stored(x: oc.types.NDArray[oc.f32, 1], y: oc.types.NDArray[oc.f32, 1]):
    oc.loop_config(block_dim=32)
    for i in range(N):
        y[i] = x[i] * x[N - 1 - i]
        y[i] = subgroup.reduce_all_add_tiled(y[i], 1)


@pytest.mark.parametrize("function", [carried, narrow, called, chosen, computed, stored], ids=lambda f: f.__name__)
@pytest.mark.parametrize("fast_math", [True, False])
def test_lanes_have_the_same_bits(arch, function, fast_math):
    oc.init(arch=getattr(oc, arch), fast_math=fast_math, log_level="error")
    x, y = np.random.default_rng(3).uniform(-1, 1, N).astype(np.float32), np.zeros(N, np.float32)
    oc.kernel(function)(x, y)
    width = 2 if function in (carried, narrow, stored) else 32
    tiles = y.reshape(-1, width).view(np.uint32)
    assert (tiles == tiles[:, :1]).all()
