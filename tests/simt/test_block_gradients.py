"""Kernels whose threads do something together have no derivative, and say so at the line where they do it."""

import inspect

import pytest

import octants as oc
from octants.simt import block, subgroup

N = 64


@pytest.fixture
def kernels(arch):
    x, y = oc.field(oc.f32, N, needs_grad=True, needs_dual=True), oc.field(oc.f32, N, needs_grad=True, needs_dual=True)

    def shuffled():
        oc.loop_config(block_dim=32)
        for i in range(N):
            y[i] = subgroup.shuffle_xor(x[i], 1) * 2.0  # here

    def summed():
        oc.loop_config(block_dim=64)
        for i in range(N):
            y[i] = block.reduce_all_add(x[i] * x[i], 64, oc.f32)  # here

    def shared():
        oc.loop_config(block_dim=32)
        for i in range(N):
            line = block.SharedArray(32, oc.f32)  # here
            line[i % 32] = x[i]
            block.sync()
            y[i] = line[31 - i % 32]

    def waiting():
        oc.loop_config(block_dim=32)
        for i in range(N):
            y[i] = 2 * x[i]
            block.sync()  # here

    def voting():
        oc.loop_config(block_dim=32)
        for i in range(N):
            if subgroup.ballot(x[i] > 0) != 0:  # here
                y[i] = 2 * x[i]

    return x, y, (shuffled, summed, shared, waiting, voting)


def run_backwards(kernel, loss, _x):
    kernel.grad()


def run_under_a_tape(kernel, loss, _x):
    with oc.ad.Tape(loss):
        kernel()


def run_forwards(kernel, loss, x):
    with oc.ad.FwdMode(loss=loss, param=x, seed=[1.0] * N):
        kernel()


@pytest.mark.parametrize("how", [run_backwards, run_under_a_tape, run_forwards])
def test_what_threads_do_together_has_no_derivative(kernels, how):
    x, _, functions = kernels
    loss = oc.field(oc.f32, (), needs_grad=True, needs_dual=True)
    for function in functions:
        source, first = inspect.getsourcelines(function)
        (line,) = [first + at for at, text in enumerate(source) if "# here" in text]
        with pytest.raises(oc.OctantsCompilationError, match="OC1103.*has no derivative") as raised:
            how(oc.kernel(function), loss, x)
        assert f"{__file__}:{line}:" in str(raised.value), raised.value
