"""Programs around `oc.ad.checkpoint` and custom gradients: right as often as they run, or refused."""

import dataclasses

import numpy as np
import pytest

import octants as oc

VEC = oc.types.ndarray(dtype=oc.f64, ndim=1)
N = 2
STEPS = 12


def vector(values=(0.0, 0.0)):
    made = oc.ndarray(oc.f64, N, needs_grad=True)
    made.from_numpy(np.array(values, dtype=np.float64))
    return made


def single():
    return oc.ndarray(oc.f64, 1, needs_grad=True)


@oc.kernel
def multiply(x: VEC, factor: VEC, out: VEC):
    for i in x:
        out[i] = x[i] * factor[i]


@oc.kernel
def move(x: VEC, by: VEC):
    for i in x:
        x[i] = x[i] + 0.01 * by[i]


@oc.kernel
def bend(x: VEC):
    for i in x:
        x[i] = oc.sin(x[i])


@oc.kernel
def add_up(x: VEC, loss: VEC):
    for i in x:
        loss[0] += x[i] * x[i]


@oc.kernel
def set_zero(x: VEC):
    for i in x:
        x[i] = 0.0


def differences(program, x, loss, step=1e-6):
    start, found = x.to_numpy(), np.zeros(N)
    for i in range(N):
        values = []
        for sign in (1, -1):
            moved = start.copy()
            moved[i] += sign * step
            x.from_numpy(moved)
            loss.fill(0)
            program()
            values.append(float(loss[0]))
        found[i] = (values[0] - values[1]) / (2 * step)
    x.from_numpy(start)
    return found


def check(program, p, loss):
    """Twice in a row: nothing is left of the first run."""
    expected = differences(program, p, loss)
    for _ in range(2):
        with oc.ad.Tape(loss):
            program()
        np.testing.assert_allclose(p.grad.to_numpy(), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("snapshots", [1, 3, None])
def test_arrays_that_only_steps_use_are_cleared(arch, snapshots):
    p, x, by, loss = vector([0.3, 0.7]), vector(), vector(), single()

    def step(_):
        multiply(x, p, by)
        move(x, by)

    def program():
        x.copy_from(start)
        oc.ad.checkpoint(step, STEPS, [x], snapshots=snapshots)
        add_up(x, loss)

    start = vector([1.0, 2.0])
    check(program, p, loss)


def test_functions_that_are_left_out_or_replaced_in_a_step(arch):
    p, x, by, loss, count = vector([0.3, 0.7]), vector(), vector(), single(), vector()

    @oc.ad.no_grad
    def count_steps():
        move(count, by)
        move(count, by)

    @oc.ad.grad_replaced
    def sine(x):
        bend(x)

    kept = []

    @oc.ad.grad_for(sine)
    def sine_back(x):
        # The value before is the inverse of that after.
        x.grad.from_numpy(x.grad.to_numpy() * np.cos(np.arcsin(x.to_numpy())))
        kept.append(1)

    def step(_):
        count_steps()
        multiply(x, p, by)
        move(x, by)
        count_steps()
        bend(x)
        move(x, by)

    start = vector([0.4, 0.6])

    def program():
        x.copy_from(start)
        oc.ad.checkpoint(step, STEPS, [x])
        add_up(x, loss)

    check(program, p, loss)

    def replaced_step(_):
        sine(x)

    def replaced_program():
        x.copy_from(p)
        oc.ad.checkpoint(replaced_step, 3, [x])
        add_up(x, loss)

    check(replaced_program, p, loss)
    assert kept


def test_a_sum_over_steps_holds_its_value_after_the_way_back(arch):
    p, x, by, loss, energy = vector([0.3, 0.7]), vector(), vector(), single(), single()

    def step(_):
        multiply(x, p, by)
        move(x, by)
        add_up(x, energy)
        add_up(x, loss)

    def program():
        x.copy_from(start)
        oc.ad.checkpoint(step, STEPS, [x], snapshots=2)

    start = vector([1.0, 2.0])
    program()
    once, total = energy.to_numpy(), loss.to_numpy()
    energy.fill(0)
    with oc.ad.Tape(loss):
        program()
    np.testing.assert_array_equal(energy.to_numpy(), once)
    np.testing.assert_array_equal(loss.to_numpy(), total)
    check(program, p, loss)


def test_two_checkpoints_of_one_state_and_a_kernel_in_place_behind(arch):
    p, x, by, loss = vector([0.3, 0.7]), vector(), vector(), single()

    def step(_):
        multiply(x, p, by)
        move(x, by)

    def program():
        x.copy_from(start)
        oc.ad.checkpoint(step, STEPS, [x])
        bend(x)
        oc.ad.checkpoint(step, STEPS, [x], snapshots=2)
        bend(x)
        add_up(x, loss)

    start = vector([1.0, 2.0])
    check(program, p, loss)


def test_a_forgotten_state_is_refused(arch):
    x, v, by, loss = vector([1.0, 2.0]), vector([0.001, 0.002]), vector([1e-6, 1e-6]), single()

    def step(_):
        move(v, by)
        move(x, v)

    with pytest.raises(oc.OctantsRuntimeError, match="another state"), oc.ad.Tape(loss):
        oc.ad.checkpoint(step, STEPS, [x])
        add_up(x, loss)
    with oc.ad.Tape(loss):
        oc.ad.checkpoint(step, STEPS, [x, v])
        add_up(x, loss)


def test_a_flag_that_is_set_half_way_is_refused(arch):
    x, slow, fast, loss = vector([1.0, 2.0]), vector([1e-9, 1e-9]), vector([2e-9, 2e-9]), single()
    by = slow

    def step(number):
        nonlocal by
        if number == 3:
            by = fast
        move(x, by)

    with pytest.raises(oc.OctantsRuntimeError, match="another state"), oc.ad.Tape(loss):
        oc.ad.checkpoint(step, STEPS, [x])
        add_up(x, loss)


@dataclasses.dataclass(slots=True)
class Slotted:
    """A state in slots."""

    x: VEC
    by: VEC


@oc.kernel
def move_slotted(state: Slotted):
    for i in state.x:
        state.x[i] = state.x[i] + 0.01 * state.by[i] * state.x[i]


def test_dataclasses_with_slots(arch):
    x, by, loss = vector(), vector([1.0, 3.0]), single()
    state = Slotted(x, by)

    def program():
        x.copy_from(start)
        oc.ad.checkpoint(lambda _: move_slotted(state), STEPS, [x])
        add_up(x, loss)

    start = vector([1.0, 2.0])
    check(program, by, loss)


@oc.ad.grad_replaced
def scale(x, factor, out):
    """By hand."""
    multiply(x, factor, out)


@oc.kernel
def scale_by_hand(x: VEC, x_grad: VEC, factor: VEC, factor_grad: VEC, out_grad: VEC):
    for i in x:
        x_grad[i] += out_grad[i] * factor[i]
        factor_grad[i] += out_grad[i] * x[i]
        out_grad[i] = 0.0


@oc.ad.grad_for(scale)
def scale_back(x, factor, out):
    scale_by_hand(x, x.grad, factor, factor.grad, out.grad)


def test_arrays_of_replaced_functions_are_cleared(arch):
    p, factor, out, loss = vector([0.3, 0.7]), vector([2.0, 3.0]), vector(), single()

    def program():
        scale(p, factor, out)
        add_up(out, loss)

    for _ in range(2):
        with oc.ad.Tape(loss):
            program()
        np.testing.assert_allclose(p.grad.to_numpy(), 2 * p.to_numpy() * factor.to_numpy() ** 2)
        np.testing.assert_allclose(factor.grad.to_numpy(), 2 * factor.to_numpy() * p.to_numpy() ** 2)


def test_arrays_of_replaced_functions_that_are_written_since_are_refused(arch):
    p, factor, out, loss = vector([0.3, 0.7]), vector([2.0, 3.0]), vector(), single()
    with pytest.raises(oc.OctantsRuntimeError, match=r"`scale`.*`fill` at .*py:\d+"), oc.ad.Tape(loss):
        scale(p, factor, out)
        out.fill(1.0)
        add_up(out, loss)
    # What the function by hand reads must be what it was.
    with pytest.raises(oc.OctantsRuntimeError, match=r"OC1105.*`scale`.*`factor`.*`set_zero`"), oc.ad.Tape(loss):
        scale(p, factor, out)
        add_up(out, loss)
        set_zero(factor)
