"""Arrays that steps of a checkpoint use and that are not in its state: scratch that each step writes before it reads it, and sums that nobody asks for."""

import numpy as np
import pytest
from test_checkpoint_programs import STEPS, add_up, check, move, multiply, single, vector

import octants as oc

VEC = oc.types.ndarray(dtype=oc.f64, ndim=1)
COUNT = oc.types.ndarray(dtype=oc.i32, ndim=1)


@oc.kernel
def squared(sums: VEC, x: VEC, y: VEC):
    sums[0] = 0.5 * sums[0] * sums[0] + x[0]


@oc.kernel
def shown(sums: VEC, x: VEC, y: VEC):
    sums[0] = sums[0] + x[0]
    y[0] = sums[0] * 2.0


@oc.kernel
def branched(sums: VEC, x: VEC, y: VEC):
    if sums[0] > 1.5:
        sums[0] = sums[0] + x[0] * 0.1
    else:
        sums[0] = sums[0] + x[0]


@oc.kernel
def counted(count: COUNT, x: VEC, loss: VEC):
    n = count[0]
    count[0] = n + 1
    loss[0] += x[0] * x[0] * n


@oc.kernel
def summed(sums: VEC, x: VEC, y: VEC):
    sums[0] = sums[0] + x[0] * x[0]


def rollout(factor, x, by, start, more):
    x.copy_from(start)

    def step(n):
        multiply(x, factor, by)
        move(x, by)
        more()

    oc.ad.checkpoint(step, STEPS, [x])


def arrays():
    return vector((0.3, 0.7)), vector(), vector(), vector((1.0, 2.0))


@pytest.mark.parametrize("kernel", [squared, shown, branched])
def test_what_is_no_sum_is_not_taken_for_one(arch, kernel):
    (factor, x, by, start), loss, sums, y = arrays(), single(), vector(), vector()

    def more():
        kernel(sums, x, y)
        add_up(y, loss)

    with pytest.raises(RuntimeError, match="reads `sums` in a step"), oc.ad.Tape(loss):
        rollout(factor, x, by, start, more)
        add_up(sums, loss)


def test_a_counter_that_a_kernel_reads_is_not_taken_for_a_sum(arch):
    (factor, x, by, start), loss, count = arrays(), single(), oc.ndarray(oc.i32, 1)
    with pytest.raises(RuntimeError, match="reads `count` in a step"), oc.ad.Tape(loss):
        rollout(factor, x, by, start, lambda: counted(count, x, loss))


def test_a_sum_that_nobody_asks_for_while_steps_run_is_one(arch):
    (factor, x, by, start), loss, sums, y = arrays(), single(), vector(), vector()

    def program():
        sums.fill(0)
        rollout(factor, x, by, start, lambda: summed(sums, x, y))
        add_up(sums, loss)

    check(program, factor, loss)


@oc.kernel
def cleared_and_added(x: VEC, factor: VEC, force: VEC):
    for i in force:
        force[i] = 0.0
    for i in x:
        force[i] += oc.sin(x[i])
    for i in x:
        x[i] = x[i] + 0.1 * factor[i] * oc.cos(force[i])


@oc.kernel
def in_one_loop(x: VEC, factor: VEC, force: VEC):
    for i in x:
        force[i] = oc.sin(x[i])
        x[i] = x[i] + 0.1 * factor[i] * oc.cos(force[i])


@oc.kernel
def of_a_neighbour(x: VEC, factor: VEC, force: VEC):
    for i in x:
        force[i] = oc.sin(x[i]) * factor[i]
    for i in x:
        x[i] = x[i] + 0.1 * force[(i + 1) % 2]


@pytest.mark.parametrize("kernel", [cleared_and_added, in_one_loop, of_a_neighbour])
def test_scratch_that_a_kernel_writes_before_it_reads_it(arch, kernel):
    (factor, x, _, start), loss, force = arrays(), single(), vector()

    def program():
        x.copy_from(start)
        oc.ad.checkpoint(lambda n: kernel(x, factor, force), STEPS, [x])
        add_up(x, loss)

    check(program, factor, loss)


@oc.kernel
def of_the_one_before(x: VEC, factor: VEC, force: VEC):
    x[0] = x[0] + 0.1 * factor[0] * oc.cos(force[0])
    force[0] = oc.sin(x[0])


def test_scratch_that_a_kernel_reads_before_it_writes_it_is_refused(arch):
    (factor, x, _, start), loss, force = arrays(), single(), vector()
    x.copy_from(start)
    with pytest.raises(RuntimeError, match="reads `force` in a step"), oc.ad.Tape(loss):
        oc.ad.checkpoint(lambda n: of_the_one_before(x, factor, force), STEPS, [x])
        add_up(x, loss)


def test_what_the_host_sees_in_a_step_is_not_computed_with_behind_the_checkpoint(arch):
    (factor, x, by, start), loss, seen, y = arrays(), single(), [], vector()
    with pytest.raises(RuntimeError, match=r"__setitem__.* after the host has read"), oc.ad.Tape(loss):
        rollout(factor, x, by, start, lambda: seen.append(x[0]))
        y[0] = 3.0 * seen[-1]
        add_up(y, loss)


def test_a_look_at_the_loss_forbids_nothing(arch):
    (factor, _, by, _), loss = arrays(), single()
    with oc.ad.Tape(loss):
        add_up(factor, loss)
        assert loss[0] > 0
        by.fill(2.0)
    np.testing.assert_allclose(factor.grad.to_numpy(), [0.6, 1.4])


@oc.kernel
def greatest(x: VEC, top: VEC):
    for i in x:
        oc.atomic_max(top[0], x[i])


def test_a_greatest_value_over_steps_is_of_the_state(arch):
    """Which step it comes from is known from what was there before."""
    (factor, x, by, start), loss, top = arrays(), single(), single()

    def program(state):
        x.copy_from(start)
        top.fill(1.0)

        def step(_):
            multiply(x, factor, by)
            move(x, by)
            greatest(x, top)

        oc.ad.checkpoint(step, STEPS, state)
        shrink(top)
        add_up(top, loss)

    with pytest.raises(RuntimeError, match=r"OC1105.*reads `top` in a step"), oc.ad.Tape(loss):
        program([x])
    check(lambda: program([x, top]), factor, loss)


@oc.kernel
def shrink(x: VEC):
    for i in x:
        x[i] = 0.5 * x[i]


Pair = oc.types.struct(weight=oc.f64, other=oc.f64)


@oc.kernel
def add_with(x: VEC, pair: Pair, loss: VEC):
    for i in x:
        loss[0] += pair.weight * x[i] * x[i]


def test_members_of_a_struct_that_steps_take_are_compared(arch):
    (factor, x, by, start), loss, pair = arrays(), single(), Pair(weight=0.8, other=0.0)

    def program(end):
        pair.weight = 0.8
        rollout(factor, x, by, start, lambda: add_with(x, pair, loss))
        pair.weight = end

    with pytest.raises(RuntimeError, match=r"OC1105.*step \d+ of a checkpoint has called"), oc.ad.Tape(loss):
        program(0.4)
    check(lambda: program(0.8), factor, loss)


class Inside:
    def __init__(self):
        self.last = oc.ndarray(oc.i32, 2)


@oc.data_oriented
class Noting:
    def __init__(self):
        self.last, self.inside = oc.field(oc.i32, 2), Inside()

    @oc.kernel
    def note(self, x: VEC, n: oc.i32, of_numpy: COUNT):
        for i in x:
            self.last[i] = n
            self.inside.last[i] = n
            of_numpy[i] = n


def test_all_arrays_that_steps_write_end_as_the_last_step_left_them(arch):
    (factor, x, by, start), loss, noting = arrays(), single(), Noting()
    in_cells, of_numpy = oc.field(oc.f64, needs_grad=True), np.zeros(2, np.int32)
    oc.root.pointer(oc.i, 4).place(in_cells, in_cells.grad)
    times = oc.field(oc.f64, ())

    @oc.kernel
    def make_cells():
        for i in range(2):
            in_cells[i] = 0.0

    @oc.kernel
    def add_to_cells(x: VEC):
        for i in range(2):
            in_cells[i] += x[i]

    @oc.kernel
    def count_cells() -> oc.i32:
        found = 0
        for _ in in_cells:
            found += 1
        return found

    @oc.kernel
    def sum_cells(loss: VEC):
        for i in range(2):
            loss[0] += in_cells[i] ** 2

    @oc.kernel
    def keep_time(n: oc.f64):
        times[None] = n

    def step(n):
        multiply(x, factor, by)
        move(x, by)
        noting.note(x, n, of_numpy)
        keep_time(float(n))
        add_to_cells(x)

    def program():
        x.copy_from(start)
        make_cells()
        oc.ad.checkpoint(step, STEPS, [x], snapshots=2)
        sum_cells(loss)

    program()
    cells = in_cells.to_numpy()
    check(program, factor, loss)
    np.testing.assert_array_equal(in_cells.to_numpy(), cells)
    assert count_cells() == 2
    for array in (noting.last.to_numpy(), noting.inside.last.to_numpy(), of_numpy):
        np.testing.assert_array_equal(array, [STEPS - 1] * 2)
    assert times[None] == STEPS - 1


@pytest.mark.parametrize("snapshots", [1, 2, None])
def test_steps_may_run_again_from_fields(arch, snapshots, monkeypatch):
    """Copies of the state are no arrays that steps write: they stay as they are where steps run once more."""
    from octants.ad.checkpoint import _Rollout

    x, loss = oc.field(oc.f64, 2, needs_grad=True), single()

    @oc.kernel
    def bend():
        for i in x:
            x[i] = oc.sin(x[i]) + 0.3 * x[i]

    @oc.kernel
    def measure(loss: VEC):
        for i in x:
            loss[0] += x[i] * x[i]

    def step(_):
        # What this needs of `x` is there when the step has run again up to here.
        measure(loss)
        bend()

    def program():
        oc.ad.checkpoint(step, 5, [x], snapshots=snapshots)

    def gradient():
        x.from_numpy(np.array([0.3, 0.7]))
        with oc.ad.Tape(loss):
            program()
        return x.grad.to_numpy()

    expected, reached, inside = gradient(), _Rollout.reached, []

    def nudged(rollout):
        found = reached(rollout)
        return found if inside else [np.nextafter(one, 9) for one in found]

    run_again = _Rollout.run_again

    def not_nudged(*args):
        inside.append(1)
        found = run_again(*args)
        inside.clear()
        return found

    monkeypatch.setattr(_Rollout, "reached", nudged)
    monkeypatch.setattr(_Rollout, "run_again", not_nudged)
    np.testing.assert_array_equal(gradient(), expected)


def test_integers_of_the_state_need_no_gradients(arch):
    (factor, x, by, start), loss, count = arrays(), single(), oc.ndarray(oc.i32, 1)

    def program():
        x.copy_from(start)
        count.fill(0)

        def step(_):
            multiply(x, factor, by)
            move(x, by)
            counted(count, x, loss)

        oc.ad.checkpoint(step, STEPS, [x, count], snapshots=2)

    check(program, factor, loss)
    assert count[0] == STEPS


@oc.kernel
def square_of(table: VEC, factor: VEC):
    for i in table:
        table[i] = factor[i] * factor[i]


@pytest.mark.parametrize("snapshots", [1, 2, None])
@pytest.mark.parametrize("when", [0, 5])
def test_what_a_step_writes_once_holds_for_those_behind_it(arch, snapshots, when):
    (factor, x, by, start), loss, table = arrays(), single(), vector()

    def program(until):
        x.copy_from(start)
        table.fill(0.4)

        def step(n):
            if n == when:
                square_of(table, factor)
            if n >= until:
                multiply(x, table, by)
                move(x, by)

        oc.ad.checkpoint(step, STEPS, [x], snapshots=snapshots)
        add_up(x, loss)

    check(lambda: program(when), factor, loss)
    if when:
        with pytest.raises(RuntimeError, match="reads `factor` in a step|another state"), oc.ad.Tape(loss):
            program(0)


ROWS = oc.types.ndarray(dtype=oc.f64, ndim=2)


@oc.kernel
def of_the_last_ones(x: VEC, factor: VEC, ring: ROWS, now: oc.i32, loss: VEC):
    for i in x:
        ring[now, i] = oc.sin(x[i])
    for i in x:
        for k in range(3):
            loss[0] += ring[k, i] * ring[k, i] * (k + 1) * factor[i]
        x[i] = x[i] + 0.1 * factor[i]


def test_a_ring_of_states_is_of_the_state(arch):
    """Each step writes one slot and reads all of them."""
    (factor, x, _, start), loss = arrays(), single()
    ring = oc.ndarray(oc.f64, (3, 2), needs_grad=True)

    def program(state):
        x.copy_from(start)
        clear_rows(ring)
        oc.ad.checkpoint(lambda n: of_the_last_ones(x, factor, ring, n % 3, loss), STEPS, state, snapshots=2)

    with pytest.raises(RuntimeError, match="reads `ring` in a step"), oc.ad.Tape(loss):
        program([x])
    check(lambda: program([x, ring]), factor, loss)


@oc.kernel
def clear_rows(rows: ROWS):
    for i, j in rows:
        rows[i, j] = 0.0


@oc.kernel
def where_it_is_positive(x: VEC, force: VEC):
    for i in x:
        if x[i] > 1.5:
            force[i] = oc.sin(x[i])


@oc.kernel
def in_both_branches(x: VEC, force: VEC):
    for i in x:
        if x[i] > 1.5:
            force[i] = oc.sin(x[i])
        else:
            force[i] = 0.3 * x[i]


@oc.kernel
def one_half_and_the_other(x: VEC, force: VEC):
    for i in range(1):
        force[i] = oc.sin(x[i])
    for i in range(1, 2):
        force[i] = 0.3 * x[i]


@oc.kernel
def inside_of_a_serial_loop(x: VEC, force: VEC):
    for _ in range(1):
        for i in range(2):
            force[i] = oc.sin(x[i])
        for i in range(1, 2):
            force[0] = force[0] + 0.1 * force[i] * force[0]


@oc.kernel
def behind_each_other(x: VEC, force: VEC):
    """Its second iteration reads what the first one has not written."""
    for _ in range(1):
        for i in range(2):
            force[i] = oc.sin(x[i]) + 0.1 * force[1 - i] ** 2


@oc.kernel
def first_one_alone(x: VEC, force: VEC):
    for i in range(1):
        force[i] = oc.sin(x[i])


@oc.kernel
def by_force(x: VEC, factor: VEC, force: VEC):
    for i in x:
        x[i] = x[i] + 0.1 * factor[i] * oc.cos(force[1 - i])


@pytest.mark.parametrize("kernel", [in_both_branches, one_half_and_the_other, inside_of_a_serial_loop])
def test_scratch_that_steps_surely_write(arch, kernel):
    (factor, x, _, start), loss, force = arrays(), single(), vector()

    def step(_):
        kernel(x, force)
        by_force(x, factor, force)

    def program():
        x.copy_from(start)
        oc.ad.checkpoint(step, STEPS, [x], snapshots=3)
        add_up(x, loss)

    check(program, factor, loss)


@pytest.mark.parametrize("kernel", [where_it_is_positive, behind_each_other, first_one_alone])
def test_scratch_that_steps_may_not_write_is_refused(arch, kernel):
    (factor, x, _, start), loss, force = arrays(), single(), vector()

    def step(n):
        kernel(x, force)
        by_force(x, factor, force)
        if n == 6:
            set_second(force)

    def program(state):
        x.copy_from(start)
        oc.ad.checkpoint(step, STEPS, state, snapshots=3)
        add_up(x, loss)

    with pytest.raises(RuntimeError, match="reads `force` in a step|another state"), oc.ad.Tape(loss):
        program([x])

    def with_force():
        set_second(force)
        program([x, force])

    check(with_force, factor, loss)


@oc.kernel
def set_second(force: VEC):
    for i in force:
        force[i] = 0.7 + i
