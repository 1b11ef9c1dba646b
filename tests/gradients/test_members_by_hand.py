"""Gradients by hand find the members that their function has left, also where they walk them back."""

import math

import numpy as np

import octants as oc

VEC = oc.types.ndarray(dtype=oc.f64, ndim=1)
ROWS = oc.types.ndarray(dtype=oc.f64, ndim=2)
STEPS = 3


@oc.kernel
def advance(x: ROWS, t: oc.i32):
    for i in range(2):
        x[t + 1, i] = oc.sin(x[t, i]) * (1.0 + t)


@oc.kernel
def add_row(x: ROWS, loss: VEC, t: oc.i32):
    for i in range(2):
        loss[0] += x[t, i]


@oc.data_oriented
class Rollout:
    def __init__(self):
        self.x = oc.ndarray(oc.f64, (STEPS + 1, 2), needs_grad=True)
        self.t = 0
        # Neither is walked through as deep as it goes.
        self.module = math
        self.chain = None
        for _ in range(5000):
            self.chain = Link(self.chain)

    @oc.ad.grad_replaced
    def step(self):
        advance(self.x, self.t)
        self.t += 1

    @oc.ad.grad_for(step)
    def back(self):
        self.t -= 1
        advance.grad(self.x, self.t)


class Link:
    def __init__(self, behind):
        self.behind = behind


def test_a_counter_that_the_gradient_walks_back(arch):
    rollout, loss = Rollout(), oc.ndarray(oc.f64, 1, needs_grad=True)
    start = np.zeros((STEPS + 1, 2))
    start[0] = [0.3, 0.7]
    rollout.x.from_numpy(start)
    with oc.ad.Tape(loss):
        for _ in range(STEPS):
            rollout.step()
        add_row(rollout.x, loss, STEPS)
    x = rollout.x.to_numpy()
    expected = np.prod([np.cos(x[t]) * (1.0 + t) for t in range(STEPS)], axis=0)
    np.testing.assert_allclose(rollout.x.grad.to_numpy()[0], expected)


def test_what_the_host_has_set_itself_may_be_looked_at_in_forward_mode(arch):
    x = oc.field(oc.f64, 2, needs_dual=True)
    y = oc.field(oc.f64, (), needs_dual=True)

    @oc.kernel
    def add():
        for i in x:
            y[None] += x[i] * x[i]

    with oc.ad.FwdMode(loss=y, param=x, seed=[1.0, 0.0]):
        x[0] = 1.0
        x[1] = x[0] + 1.0
        x[0] = 3.0
        add()
    assert y[None] == 13.0
