"""What kernels take of a GPU, as its driver says."""

import numpy as np
import pytest

import octants as oc

pytestmark = pytest.mark.cuda_only


def test_resources_of_each_task(fresh_session):
    x = oc.ndarray(oc.f32, 1000)

    @oc.kernel
    def k(x: oc.types.ndarray(dtype=oc.f32, ndim=1)) -> oc.f32:
        for i in x:
            x[i] = oc.sin(x[i]) + 1.0
        return x[0]

    assert k.resources() == []
    k(x)
    assert np.allclose(x.to_numpy(), 1)
    loop, end = k.resources()
    assert loop["task"].endswith("k_t0") and end["task"].endswith("k_t1")
    assert 8 <= loop["registers"] <= 255
    assert loop["block"] >= 32
    assert 0 < loop["occupancy"] <= 1
    assert (end["block"], end["occupancy"]) == (1, None)
    # The reduction of large angles, which has a small array, is a function of its own.
    assert loop["local_bytes"] < 200


def test_resources_after_a_reset(fresh_session):
    @oc.kernel
    def k() -> oc.i32:
        return 1

    k()
    oc.reset()
    assert k.resources() == []
