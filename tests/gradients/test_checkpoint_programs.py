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


@oc.kernel
def set_to(x: VEC, value: oc.f64):
    x[0] = value


@oc.kernel
def count_up(x: VEC):
    x[0] = x[0] + 1.0


@oc.kernel
def count_up_in_parallel(x: VEC):
    for _ in range(1):
        x[0] += 1.0


@oc.kernel
def add_weighted(x: VEC, weight: VEC, loss: VEC):
    for i in x:
        loss[0] += x[i] * x[i] * weight[0]


@oc.kernel
def add_times(x: VEC, weight: oc.f64, loss: VEC):
    for i in x:
        loss[0] += x[i] * x[i] * weight


@oc.kernel
def add_in_order(x: VEC, loss: VEC):
    loss[0] = loss[0] + x[0] * x[0]
    loss[0] = loss[0] + x[1] * x[1]


class Counting:
    """A number of the host that each step changes."""

    def __init__(self):
        self.count = 0.0

    def next(self):
        self.count += 1.0
        return self.count


@pytest.mark.parametrize("snapshots", [1, 3, None])
def test_steps_that_read_what_is_in_no_state_are_refused(arch, snapshots):
    p, x, by, weight, loss = vector([0.3, 0.7]), vector(), vector(), vector(), single()
    start = vector([1.0, 2.0])

    def program(changes, state):
        x.copy_from(start)
        weight.fill(1.0)

        def step(number):
            multiply(x, p, by)
            move(x, by)
            changes(number)
            add_weighted(x, weight, loss)

        oc.ad.checkpoint(step, STEPS, state, snapshots=snapshots)

    for changes in (
        lambda number: set_to(weight, 3.0) if number == 6 else None,
        lambda _: count_up(weight),
        lambda _: count_up_in_parallel(weight),
        oc.ad.no_grad(lambda _: count_up(weight)),
        lambda _: move(weight, x),
    ):
        with pytest.raises(oc.OctantsRuntimeError, match=r"OC1105"), oc.ad.Tape(loss):
            program(changes, [x])
    for changes in (lambda _: count_up(weight), lambda _: move(weight, x)):
        check(lambda changes=changes: program(changes, [x, weight]), p, loss)
    # What each step writes anew is of the step.
    check(lambda: program(lambda number: set_to(weight, 3.0 if number > 6 else 1.0), [x]), p, loss)


@pytest.mark.parametrize("snapshots", [1, 3, None])
def test_steps_that_take_other_numbers_when_they_run_again_are_refused(arch, snapshots):
    p, x, by, loss = vector([0.3, 0.7]), vector(), vector(), single()
    start = vector([1.0, 2.0])
    counting, random = Counting(), np.random.default_rng(0)

    def program(weight):
        x.copy_from(start)

        def step(number):
            multiply(x, p, by)
            move(x, by)
            add_times(x, weight(number), loss)

        oc.ad.checkpoint(step, STEPS, [x], snapshots=snapshots)

    for weight in (lambda _: counting.next(), lambda _: float(random.uniform())):
        with pytest.raises(oc.OctantsRuntimeError, match=r"OC1105.*step \d+ of a checkpoint"), oc.ad.Tape(loss):
            program(weight)
    check(lambda: program(lambda number: 0.5 * number), p, loss)


@oc.data_oriented
class Timed:
    """A member that kernels read, and one that they do not."""

    def __init__(self):
        self.time, self.calls = 1.0, 0
        self.weights = np.ones(N)

    @oc.kernel
    def add(self, x: VEC, loss: VEC):
        for i in x:
            loss[0] += x[i] * x[i] * self.time * self.weights[i]


def test_members_that_steps_change_are_refused_if_kernels_read_them(arch):
    p, x, by, loss, timed = vector([0.3, 0.7]), vector(), vector(), single(), Timed()
    start = vector([1.0, 2.0])

    def program(changes):
        x.copy_from(start)

        def step(number):
            multiply(x, p, by)
            move(x, by)
            changes(number)
            timed.calls += 1
            timed.add(x, loss)

        oc.ad.checkpoint(step, STEPS, [x])

    def grows(_):
        timed.time += 1.0

    def refills(_):
        timed.weights[:] += 1.0

    for changes in (grows, refills):
        with pytest.raises(oc.OctantsRuntimeError, match=r"OC1105.*step \d+ of a checkpoint"), oc.ad.Tape(loss):
            program(changes)
        timed.time, timed.weights = 1.0, np.ones(N)
    check(lambda: program(lambda number: setattr(timed, "time", 0.5 * number)), p, loss)


def test_sums_in_order_over_steps(arch):
    p, x, by, loss = vector([0.3, 0.7]), vector(), vector(), single()
    start = vector([1.0, 2.0])

    def program():
        x.copy_from(start)

        def step(_):
            multiply(x, p, by)
            move(x, by)
            add_in_order(x, loss)

        oc.ad.checkpoint(step, STEPS, [x])

    check(program, p, loss)


def by_kernel(x, factor, out):
    scale_by_hand(x, x.grad, factor, factor.grad, out.grad)


def by_numpy(x, factor, out):
    adjoint = out.grad.to_numpy()
    x.grad.from_numpy(x.grad.to_numpy() + adjoint * factor.to_numpy())
    factor.grad.from_numpy(factor.grad.to_numpy() + adjoint * x.to_numpy())
    out.grad.fill(0)


def by_elements(x, factor, out):
    for i in range(N):
        x.grad[i] = x.grad[i] + out.grad[i] * factor[i]
        factor.grad[i] = factor.grad[i] + out.grad[i] * x[i]
        out.grad[i] = 0.0


def by_copies(x, factor, out):
    other = vector()
    other.copy_from(factor)
    scale_by_hand(x, x.grad, other, factor.grad, out.grad)


@pytest.mark.parametrize("backward", [by_kernel, by_numpy, by_elements, by_copies])
def test_what_a_gradient_by_hand_reads_is_what_its_function_saw(arch, backward):
    p, factor, out, loss = vector([0.3, 0.7]), vector([2.0, 3.0]), vector(), single()

    @oc.ad.grad_replaced
    def function(x, factor, out):
        multiply(x, factor, out)

    oc.ad.grad_for(function)(backward)
    with oc.ad.Tape(loss):
        function(p, factor, out)
        add_up(out, loss)
    np.testing.assert_allclose(p.grad.to_numpy(), 2 * p.to_numpy() * factor.to_numpy() ** 2)
    with pytest.raises(oc.OctantsRuntimeError, match=r"OC1105.*`function`.*`set_zero`"), oc.ad.Tape(loss):
        function(p, factor, out)
        add_up(out, loss)
        set_zero(factor)


@oc.data_oriented
class Scaled:
    """Gradients by hand that read a member."""

    def __init__(self):
        self.x, self.y, self.by = vector([0.3, 0.7]), vector(), 1.0

    @oc.kernel
    def run(self):
        for i in self.x:
            self.y[i] += oc.sin(self.x[i]) * self.by

    @oc.ad.grad_replaced
    def step(self):
        self.run()

    @oc.ad.grad_for(step)
    def step_back(self):
        self.run.grad()


def test_members_are_those_of_the_call_for_gradients_by_hand(arch):
    scaled, loss = Scaled(), single()

    def program():
        set_zero(scaled.y)
        for number in range(3):
            scaled.by = number + 1.0
            scaled.step()
        scaled.by = 100.0
        add_up(scaled.y, loss)

    check(program, scaled.x, loss)
    assert scaled.by == 100.0


def test_fields_of_replaced_functions_that_are_written_since_are_refused(arch):
    x, y = (oc.field(oc.f64, N, needs_grad=True) for _ in range(2))
    loss = oc.field(oc.f64, (), needs_grad=True)

    @oc.kernel
    def forward():
        for i in x:
            y[i] = 2.0 * x[i]

    @oc.kernel
    def back():
        for i in x:
            x.grad[i] += 2.0 * y.grad[i]
            y.grad[i] = 0.0

    @oc.kernel
    def add():
        for i in y:
            loss[None] += y[i] * y[i]

    @oc.ad.grad_replaced
    def function():
        forward()

    oc.ad.grad_for(function)(back)
    x.fill(1.0)
    with oc.ad.Tape(loss):
        function()
        add()
    assert x.grad.to_numpy().tolist() == [8.0] * N
    with pytest.raises(oc.OctantsRuntimeError, match=r"OC1105.*`function`.*`fill`"), oc.ad.Tape(loss):
        function()
        y.fill(3.0)
        add()


def test_arrays_of_a_pair_hold_what_the_last_step_left(arch):
    p, x, later, loss = vector([0.3, 0.7]), vector(), vector(), single()

    def program():
        x.copy_from(p)
        oc.ad.checkpoint(lambda _: multiply(x, p, later), 5, [(x, later)], snapshots=2)
        move(later, p)
        add_up(later, loss)

    program()
    expected = [x.to_numpy(), later.to_numpy()]
    loss.fill(0)
    with oc.ad.Tape(loss):
        program()
    for array, values in zip((x, later), expected, strict=True):
        np.testing.assert_array_equal(array.to_numpy(), values)


def test_code_that_keeps_values_may_round_in_another_way(arch, monkeypatch):
    """Each step of the way back comes to a state one bit off, and the steps, run again, to the first one."""
    from octants.ad.checkpoint import _Rollout

    p, x, by, loss = vector([0.3, 0.7]), vector(), vector(), single()
    start = vector([1.0, 2.0])
    reached, run_again, inside = _Rollout.reached, _Rollout.run_again, []

    def nudged(rollout):
        found = reached(rollout)
        return found if inside else [np.nextafter(one, 9) for one in found]

    def not_nudged(*args):
        inside.append(1)
        found = run_again(*args)
        inside.clear()
        return found

    monkeypatch.setattr(_Rollout, "reached", nudged)
    monkeypatch.setattr(_Rollout, "run_again", not_nudged)

    def step(_):
        set_zero(by)
        multiply(x, p, by)
        move(by, p)
        bend(x)
        move(x, by)

    def program():
        x.copy_from(start)
        oc.ad.checkpoint(step, STEPS, [x], snapshots=2)
        add_up(x, loss)

    check(program, p, loss)
