"""`oc.ad.checkpoint`: gradients of many steps in the same arrays, in bounded memory."""

import math

import numpy as np
import pytest
from gradient_values import SCALAR, VEC, made

import octants as oc

STEP = 1 / 128


@oc.kernel
def swing(x: VEC, v: VEC, stiffness: SCALAR, x_next: VEC, v_next: VEC):
    for i in x:
        v_next[i] = v[i] - STEP * stiffness[None] * oc.sin(x[i])
        x_next[i] = x[i] + STEP * v_next[i]


@oc.kernel
def distance(x: VEC, loss: SCALAR):
    for i in x:
        loss[None] += (x[i] - 0.25) ** 2


def rollout(steps, snapshots=None, stiffness=1.5):
    """The loss, the gradients of the start and of the stiffness, how often a step ran, and how many copies of the state there were."""
    x, v = made([0.5, 0.2]), made([0.0, 0.1])
    x_next, v_next = made([0.0, 0.0]), made([0.0, 0.0])
    k, loss = made(stiffness), made(0.0)
    count = 0

    def step(number):
        nonlocal count
        count += 1
        swing(x, v, k, x_next, v_next)

    arrays = oc._session.runtime.live_arrays
    with oc.ad.Tape(loss):
        oc.ad.checkpoint(step, steps, [(x, x_next), (v, v_next)], snapshots=snapshots)
        copies = (oc._session.runtime.live_arrays - arrays) // 2
        distance(x, loss)
    return loss[None], [x.grad.to_numpy(), v.grad.to_numpy(), float(k.grad[None])], count, copies, x.to_numpy()


def in_numpy(steps, stiffness=1.5):
    """The same, by the adjoint method written by hand."""
    x, v = np.array([0.5, 0.2]), np.array([0.0, 0.1])
    path = []
    for _ in range(steps):
        path.append(x)
        v = v - STEP * stiffness * np.sin(x)
        x = x + STEP * v
    loss, gx, gv, gk = ((x - 0.25) ** 2).sum(), 2 * (x - 0.25), np.zeros(2), 0.0
    for before in reversed(path):
        gv = gv + STEP * gx
        gk -= STEP * (gv * np.sin(before)).sum()
        gx = gx - STEP * stiffness * np.cos(before) * gv
    return loss, [gx, gv, gk], x


@pytest.mark.parametrize(
    ("steps", "snapshots"), [(1, None), (2, 1), (7, 1), (30, 2), (30, 3), (100, None), (100, 1000), (0, None)]
)
def test_gradients_are_those_of_all_steps(arch, steps, snapshots):
    loss, found, _, copies, last = rollout(steps, snapshots)
    expected_loss, expected, expected_last = in_numpy(steps)
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-12)
    np.testing.assert_allclose(last, expected_last, rtol=1e-12)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-15)
    assert copies <= (snapshots or max(1, 2 * math.isqrt(steps)))


def test_ten_thousand_steps_in_two_hundred_copies():
    loss, found, count, copies, _ = rollout(10_000)
    expected_loss, expected, _ = in_numpy(10_000)
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-10)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8)
    assert copies <= 200
    # Once forward, at most twice again, and once recorded.
    assert count <= 4 * 10_000


def test_few_copies_take_more_steps_and_none_too_many():
    counts = {snapshots: rollout(60, snapshots)[2] for snapshots in (1, 2, 5, 60)}
    assert counts[1] > counts[2] > counts[5] > counts[60]
    assert counts[60] <= 3 * 60
    assert counts[1] <= 60 + 60 * 61 // 2


def test_fields_updated_in_place_and_temporaries(arch):
    position = oc.Vector.field(2, oc.f64, 3, needs_grad=True)
    force = oc.Vector.field(2, oc.f64, 3, needs_grad=True)
    loss = oc.field(oc.f64, (), needs_grad=True)

    @oc.kernel
    def pull():
        for i in position:
            force[i] = oc.Vector([0.0, 0.0], oc.f64)
        for i in position:
            force[i] += oc.sin(position[(i + 1) % 3]) - position[i]

    @oc.kernel
    def move():
        for i in position:
            position[i] += 0.1 * force[i]

    @oc.kernel
    def measure():
        for i in position:
            loss[None] += position[i].norm_sqr()

    start = np.arange(6.0).reshape(3, 2) / 7

    def step(number):
        pull()
        move()

    def value(start):
        position.from_numpy(start)
        loss[None] = 0
        oc.ad.checkpoint(step, 12, position)
        measure()
        return loss[None]

    position.from_numpy(start)
    with oc.ad.Tape(loss):
        oc.ad.checkpoint(step, 12, position, snapshots=3)
        measure()
    found, total = position.grad.to_numpy(), loss[None]
    np.testing.assert_allclose(total, value(start))
    for index in np.ndindex(3, 2):
        moved = np.zeros((3, 2))
        moved[index] = 1e-6
        difference = (value(start + moved) - value(start - moved)) / 2e-6
        np.testing.assert_allclose(found[index], difference, rtol=1e-6)


def test_a_state_that_is_not_all_that_goes_on_is_refused(arch):
    x, v = made([0.5, 0.2]), made([0.3, 0.1])
    loss = made(0.0)

    @oc.kernel
    def turn(x: VEC, v: VEC):
        for i in x:
            x[i] = oc.sin(x[i]) + v[i]
        for i in x:
            v[i] = v[i] * x[i]

    @oc.kernel
    def shake(x: VEC):
        for i in x:
            x[i] = x[i] * oc.random(oc.f64)

    def run(step, state, steps):
        x.from_numpy(np.array([0.5, 0.2]))
        v.from_numpy(np.array([0.3, 0.1]))
        with oc.ad.Tape(loss):
            oc.ad.checkpoint(step, steps, state, snapshots=2)
            distance(x, loss)

    for steps in (2, 3, 7):
        with pytest.raises(oc.OctantsRuntimeError, match="reads `v` in a step(.|\n)*not in `state`"):
            run(lambda number: turn(x, v), [x], steps)
        with pytest.raises(oc.OctantsRuntimeError, match="random numbers"):
            run(lambda number: shake(x), [x], steps)
        run(lambda number: turn(x, v), [x, v], steps)


def test_what_steps_must_not_do():
    x, y, loss = made([0.5, 0.2]), made([0.0, 0.0]), made(0.0)

    @oc.kernel
    def add(x: VEC, y: VEC):
        for i in x:
            y[i] += x[i]

    def clears_by_host(number):
        y.fill(0.0)
        add(x, y)

    with pytest.raises(oc.OctantsRuntimeError, match=r"\[OC1105\].*need those of `y`, and `fill`"), oc.ad.Tape(loss):
        oc.ad.checkpoint(clears_by_host, 3, [(x, y)])
    for bad, error in (
        (lambda: oc.ad.checkpoint(clears_by_host, -1, x), ValueError),
        (lambda: oc.ad.checkpoint(clears_by_host, 2.5, x), ValueError),
        (lambda: oc.ad.checkpoint(clears_by_host, 2, x, snapshots=0), ValueError),
        (lambda: oc.ad.checkpoint(clears_by_host, 2, []), TypeError),
        (lambda: oc.ad.checkpoint(clears_by_host, 2, [3]), TypeError),
        (lambda: oc.ad.checkpoint(clears_by_host, 2, [(x, made([1.0]))]), TypeError),
        # As a pair it would be taken for one whose first is read and whose second is written.
        (lambda: oc.ad.checkpoint(clears_by_host, 2, [(x, x)]), TypeError),
        (lambda: oc.ad.checkpoint(clears_by_host, 2, (x,)), TypeError),
    ):
        with pytest.raises(error):
            bad()
    plain = made([1.0, 2.0], needs_grad=False)
    with pytest.raises(oc.OctantsRuntimeError, match="needs_grad=True"), oc.ad.Tape(loss):
        oc.ad.checkpoint(lambda number: None, 2, plain)
