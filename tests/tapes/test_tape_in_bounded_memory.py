"""`oc.ad.Tape(loss, memory=…)`: loops that overwrite their state, with as many copies as fit."""

import dataclasses
import math
import re

import numpy as np
import pytest
from gradient_values import SCALAR, VEC, integers, made

import octants as oc

STEP = 1 / 128
ROWS = oc.types.ndarray(dtype=oc.f64, ndim=2)


@oc.kernel
def kick(x: VEC, v: VEC, stiffness: SCALAR):
    for i in x:
        v[i] = v[i] - STEP * stiffness[None] * oc.sin(x[i])


@oc.kernel
def drift(x: VEC, v: VEC):
    for i in x:
        x[i] = x[i] + STEP * v[i]


@oc.kernel
def distance(x: VEC, loss: SCALAR):
    for i in range(1):
        for j in range(x.shape[0]):
            loss[None] += (x[j] - 0.25) ** 2


@oc.kernel
def kick_row(t: oc.i32, x: ROWS, v: ROWS, stiffness: SCALAR):
    for i in range(x.shape[1]):
        v[t + 1, i] = v[t, i] - STEP * stiffness[None] * oc.sin(x[t, i])


@oc.kernel
def drift_row(t: oc.i32, x: ROWS, v: ROWS):
    for i in range(x.shape[1]):
        x[t + 1, i] = x[t, i] + STEP * v[t + 1, i]


@oc.kernel
def distance_row(t: oc.i32, x: ROWS, loss: SCALAR):
    for i in range(1):
        for j in range(x.shape[1]):
            loss[None] += (x[t, j] - 0.25) ** 2


def start(count):
    return np.linspace(0.2, 0.5, count), np.linspace(0.0, 0.1, count)


def in_place(steps, memory, count=2, loss_each=0):
    """The tape, the loss, the gradients of the start and of the stiffness, and the arrays in the end."""
    x, v = (made(values) for values in start(count))
    k, loss = made(1.5), made(0.0)
    with oc.ad.Tape(loss, memory=memory) as tape:
        for number in range(steps):
            kick(x, v, k)
            drift(x, v)
            if loss_each and number % loss_each == 0:
                distance(x, loss)
        distance(x, loss)
    return tape, loss[None], [x.grad.to_numpy(), v.grad.to_numpy(), float(k.grad[None])], (x.to_numpy(), v.to_numpy())


def in_rows(steps, count=2, loss_each=0, **options):
    """The same with a row for each step."""
    x, v = (made(np.zeros((steps + 1, count))) for _ in range(2))
    for array, values in zip((x, v), start(count), strict=True):
        rows = np.zeros((steps + 1, count))
        rows[0] = values
        array.from_numpy(rows)
    k, loss = made(1.5), made(0.0)
    with oc.ad.Tape(loss, **options) as tape:
        for t in range(steps):
            kick_row(t, x, v, k)
            drift_row(t, x, v)
            if loss_each and t % loss_each == 0:
                distance_row(t + 1, x, loss)
        distance_row(steps, x, loss)
    return (
        tape, loss[None], [x.grad.to_numpy()[0], v.grad.to_numpy()[0], float(k.grad[None])], (x.to_numpy()[-1], v.to_numpy()[-1])
    )  # fmt: skip


def require_same(found, expected, rtol=1e-12):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=1e-15)


def forward_runs(calls, copies):
    """How often each call runs forward at most, besides the first time, if so many copies fit."""
    times = 1
    while math.comb(copies + times, copies) < calls:
        times += 1
    return times + 1


@pytest.mark.parametrize(
    ("steps", "count", "memory"), [(1, 2, "1KB"), (2, 2, 200), (7, 2, 200), (40, 2, 200), (40, 3, 300), (100, 2, "1 KiB"), (100, 2, "1MB")]
)  # fmt: skip
def test_gradients_are_those_of_a_row_for_each_step(arch, steps, count, memory):
    tape, loss, found, last = in_place(steps, memory, count, loss_each=3)
    _, expected_loss, expected, expected_last = in_rows(steps, count, loss_each=3)
    assert loss == expected_loss
    require_same(last, expected_last, 0)
    require_same(found, expected)
    assert tape.most_kept_bytes <= oc.ad.bounded.bytes_of(memory)
    assert tape.kept_bytes == 0


def test_ten_thousand_steps_in_copies_that_fit():
    _, expected_loss, expected, _ = in_rows(10_000)
    calls, state = 20_001, 2 * 16 + 8
    for memory, copies in ((500, 4), (2000, 22), (100_000, 1000)):
        tape, loss, found, _ = in_place(10_000, memory)
        assert loss == expected_loss
        require_same(found, expected, 1e-11)
        assert tape.most_kept_bytes <= memory
        assert tape.calls_again <= forward_runs(calls, copies) * calls, (memory, state)


def test_what_nobody_overwrites_is_neither_copied_nor_run_again(arch):
    tape, loss, found, _ = in_rows(30, memory="1KB")
    _, expected_loss, expected, _ = in_rows(30)
    assert loss == expected_loss
    require_same(found, expected, 0)
    assert tape.calls_again == 0
    assert tape.most_kept_bytes == 0


def test_what_kernels_keep_counts_and_is_computed_again_when_it_is_too_much(arch):
    @oc.kernel
    def bend(x: VEC):
        for i in x:
            x[i] = oc.sin(x[i]) + 0.1

    def run(steps, **options):
        x, loss = made([0.3, 0.7, 0.9]), made(0.0)
        with oc.ad.Tape(loss, **options) as tape:
            for _ in range(steps):
                bend(x)
            distance(x, loss)
        return tape, loss[None], x.grad.to_numpy()

    few, *found = run(50, memory="1MB")
    assert few.calls_again == 0
    assert few.most_kept_bytes == 50 * 24
    tape, *again = run(50, memory=400)
    assert tape.calls_again > 0
    assert tape.most_kept_bytes <= 400
    _, *expected = run(50)
    require_same(found, expected, 0)
    require_same(again, expected, 0)


def test_fields_of_all_kinds_and_their_differences(arch):
    Particle = oc.types.struct(mass=oc.f64, place=oc.types.vector(2, oc.f64))
    parts = Particle.field(shape=3, needs_grad=True)
    force = oc.Vector.field(2, oc.f64, 3, needs_grad=True)
    turn = oc.field(oc.i32, ())
    weights = made([0.9, 1.1, 1.3])
    loss = oc.field(oc.f64, (), needs_grad=True)

    @oc.kernel
    def pull():
        for i in force:
            force[i] = oc.Vector([0.0, 0.0], oc.f64)
        for i in force:
            force[i] += oc.sin(parts[(i + turn[None]) % 3].place) * parts[i].mass - parts[i].place

    @oc.kernel
    def move(weights: VEC):
        for i in force:
            parts[i].place += 0.1 * weights[i] * force[i]
            parts[i].mass = parts[i].mass * 0.9 + 0.05

    @oc.kernel
    def advance():
        turn[None] += 1

    @oc.kernel
    def measure():
        for i in range(1):
            for j in range(3):
                loss[None] += parts[j].place.norm_sqr() * parts[j].mass

    values = np.arange(6.0).reshape(3, 2) / 7

    def run(values):
        parts.place.from_numpy(values)
        parts.mass.fill(1.0)
        turn.fill(0)
        for _ in range(9):
            pull()
            move(weights)
            advance()
        measure()

    def value(values):
        loss.fill(0)
        run(values)
        return loss[None]

    with oc.ad.Tape(loss, memory=1400) as tape:
        run(values)
    found, end = parts.place.grad.to_numpy(), (parts.place.to_numpy(), turn[None])
    assert tape.calls_again > 0
    total = loss[None]
    assert value(values) == total
    np.testing.assert_array_equal(parts.place.to_numpy(), end[0])
    assert end[1] == 9
    for index in np.ndindex(3, 2):
        moved = np.zeros((3, 2))
        moved[index] = 1e-6
        np.testing.assert_allclose(found[index], (value(values + moved) - value(values - moved)) / 2e-6, rtol=1e-6)


def test_what_the_host_writes_runs_again(arch):
    """Elements, all of an array, copies, and what a function with `no_grad` does."""

    @oc.kernel
    def push(x: VEC, force: VEC, table: VEC, scale: SCALAR):
        for i in x:
            x[i] = oc.sin(x[i] + scale[None] * force[i] * table[i])

    @oc.kernel
    def grow(table: VEC):
        for i in table:
            table[i] = table[i] * 1.5 - 0.2

    def run(memory):
        x, loss = made([0.3, 0.7]), made(0.0)
        scale, force, table = (made(one, needs_grad=False) for one in (0.0, [0.0, 0.0], [0.0, 0.0]))
        spare = made([0.5, 0.25], needs_grad=False)
        arrays = []

        @oc.ad.no_grad
        def between(number):
            grow(table)
            table[0] = 0.1 * number

        with oc.ad.Tape(loss, memory=memory) as tape:
            for number in range(12):
                if memory:
                    a, b, c = force, table, scale
                else:
                    # Each step has arrays of its own, where nothing is overwritten.
                    a, b, c = (made(one.to_numpy(), needs_grad=False) for one in (force, table, scale))
                    x_next = made([0.0, 0.0])
                    arrays.append((a, b, c, x))
                    x_next.copy_from(x)
                    x = x_next
                force, table, scale = a, b, c
                scale[None] = 0.3 * number
                if number % 3 == 0:
                    force.from_numpy(np.array([0.1 * number, 0.4]))
                elif number % 3 == 1:
                    force.fill(0.2 * number)
                else:
                    force.copy_from(spare)
                between(number)
                push(x, force, table, scale)
            distance(x, loss)
        first = x if memory else arrays[0][3]
        return tape, loss[None], first.grad.to_numpy(), table.to_numpy(), scale[None]

    _, *expected = run(None)
    for memory in (500, "1MB"):
        tape, *found = run(memory)
        assert tape.calls_again > 0
        require_same(found, expected, 1e-14)


def test_numbers_and_members_are_those_of_the_call(arch):
    @dataclasses.dataclass
    class Settings:
        table: VEC
        rate: oc.f64

    @oc.kernel
    def step(x: VEC, y: VEC, settings: Settings, extra: oc.f64):
        for i in x:
            y[i] = oc.sin(x[i]) * settings.table[i] + settings.rate * x[i] + extra

    tables = [made([1.0 + t, 0.5], needs_grad=False) for t in range(3)]

    def run(**options):
        x, loss = made([0.3, 0.7]), made(0.0)
        y = made([0.0, 0.0])
        rows = [x, *(made([0.0, 0.0]) for _ in range(10))]
        settings = Settings(tables[0], 0.1)
        with oc.ad.Tape(loss, **options):
            for t in range(10):
                settings.rate, settings.table = 0.1 * t, tables[t % 3]
                if options:
                    step(x, y, settings, 0.01 * t)
                    x, y = y, x
                else:
                    step(rows[t], rows[t + 1], settings, 0.01 * t)
            distance(x if options else rows[10], loss)
        settings.rate = 7.0
        return loss[None], (x if options else rows[0]).grad.to_numpy()

    require_same(run(memory=300), run(), 1e-14)


def test_numpy_arrays_that_kernels_overwrite(arch):
    """They are constants of derivatives, and what they held is computed again as well."""
    R = oc.types.ndarray(dtype=oc.f64, ndim=1)

    @oc.kernel
    def push(x: VEC, y: VEC, table: R):
        for i in x:
            y[i] = oc.sin(x[i]) * table[i]
        for i in table:
            table[i] = table[i] * 1.1 - 0.02

    def run(values, memory):
        x, y, loss, table = made(values), made([0.0, 0.0]), made(0.0), np.array([0.9, 1.2])
        with oc.ad.Tape(loss, memory=memory) as recorded:
            for _ in range(8):
                push(x, y, table)
                push(y, x, table)
            distance(x, loss)
        return recorded, loss[None], x.grad.to_numpy(), table

    start_values = np.array([0.3, 0.7])
    tape, _, found, table = run(start_values, 500)
    assert tape.calls_again > 0
    x, y, expected = made(start_values), made([0.0, 0.0]), np.array([0.9, 1.2])
    for _ in range(8):
        push(x, y, expected)
        push(y, x, expected)
    np.testing.assert_array_equal(table, expected)
    for at in range(2):
        step = 1e-6 * np.eye(2)[at]
        ends = [run(start_values + sign * step, "1MB")[1] for sign in (1, -1)]
        np.testing.assert_allclose(found[at], (ends[0] - ends[1]) / 2e-6, rtol=1e-6)


def test_calls_in_streams(arch):
    stream = oc.create_stream()
    x, v = (made(values) for values in start(2))
    k, loss = made(1.5), made(0.0)
    with oc.ad.Tape(loss, memory=300) as tape:
        for _ in range(20):
            kick(x, v, k, qd_stream=stream)
            stream.synchronize()
            drift(x, v)
            oc.sync()
        distance(x, loss)
    _, _, expected, _ = in_place(20, "1MB")
    assert tape.calls_again > 0
    require_same([x.grad.to_numpy(), v.grad.to_numpy(), float(k.grad[None])], expected, 0)


def test_tapes_in_a_row_by_hand_and_behind_exceptions(arch):
    x, v = (made(values) for values in start(2))
    k, loss = made(1.5), made(0.0)
    arrays = oc._session.runtime.live_arrays

    def run(loss_of_tape=loss):
        with oc.ad.Tape(loss_of_tape, memory=400) as tape:
            for _ in range(10):
                kick(x, v, k)
                drift(x, v)
            distance(x, loss)
        return tape

    run()
    first = x.grad.to_numpy()
    for array, values in zip((x, v), start(2), strict=True):
        array.from_numpy(values)
    with pytest.raises(ZeroDivisionError), oc.ad.Tape(loss, memory=400):
        for _ in range(10):
            kick(x, v, k)
            drift(x, v)
        raise ZeroDivisionError
    for array, values in zip((x, v), start(2), strict=True):
        array.from_numpy(values)
    run()
    np.testing.assert_array_equal(x.grad.to_numpy(), first)
    # Without a loss the gradients are seeded by hand.
    for array, values in zip((x, v), start(2), strict=True):
        array.from_numpy(values)
    loss.fill(0)
    tape = run(None)
    tape.clear_gradients = False
    for array in (x, v, k):
        array.grad.fill(0)
    loss.grad[None] = 2.0
    tape.grad()
    np.testing.assert_array_equal(x.grad.to_numpy(), 2 * first)
    assert oc._session.runtime.live_arrays == arrays
    # Behind the block nothing may be written that its calls have used.
    tape = run(None)
    v.fill(0)
    with pytest.raises(oc.OctantsRuntimeError, match=r"OC1105(.|\n)*`fill` at .* has written there since"):
        tape.grad()


@pytest.mark.parametrize(
    ("memory", "error", "text"),
    [
        ("lots", ValueError, '"2GB"'),
        ("2 parsecs", ValueError, '"2GB"'),
        (-1, ValueError, "more than nothing"),
        (0, ValueError, "more than nothing"),
        (1.5, TypeError, "number of bytes"),
        (True, TypeError, "number of bytes"),
    ],
)
def test_what_is_no_memory_is_told(memory, error, text):
    with pytest.raises(error, match=text):
        oc.ad.Tape(made(0.0), memory=memory)


def test_too_little_memory_says_how_much_is_needed():
    with pytest.raises(oc.OctantsRuntimeError, match=r"memory=50 is too small.* (\d+) bytes are needed") as told:
        in_place(5, 50)
    assert "64 bytes" in str(told.value)


def test_what_is_said_to_be_needed_is_needed(arch):
    @oc.kernel
    def bend(x: VEC):
        for i in x:
            x[i] = oc.sin(x[i]) * x[i]

    @oc.kernel
    def mix(x: VEC, y: VEC):
        for i in x:
            y[i] = y[i] * x[i] + 1
            x[i] = oc.cos(y[i])

    @oc.kernel
    def total(x: VEC, loss: SCALAR):
        for i in x:
            loss[None] += x[i]

    def gradient(memory):
        x, y, loss = made([0.3] * 9), made([0.5] * 9), made(0.0)
        with oc.ad.Tape(loss, memory=memory):
            for _ in range(20):
                bend(x)
                mix(x, y)
            total(x, loss)
        return x.grad.to_numpy()

    tried = [10]
    while True:
        try:
            found = gradient(tried[-1])
            break
        except oc.OctantsRuntimeError as error:
            tried.append(int(re.search(r"too small.* at least (\d+) bytes are needed", str(error))[1]))
            assert tried[-1] > tried[-2]
    np.testing.assert_array_equal(found, gradient("1MB"))
    # No smaller one does: each number was needed.
    with pytest.raises(oc.OctantsRuntimeError, match=f"at least {tried[-1]} bytes"):
        gradient(tried[-1] - 1)


def test_what_cannot_run_again_is_refused(arch):
    x, y, loss = made([0.3, 0.7]), made([0.0, 0.0]), made(0.0)

    @oc.kernel
    def shake(x: VEC, y: VEC):
        for i in x:
            y[i] = x[i] * oc.random(oc.f64)
            x[i] = oc.sin(y[i])

    @oc.kernel
    def bend(x: VEC, y: VEC):
        for i in x:
            y[i] = oc.sin(x[i])

    @oc.kernel
    def clear_derivatives(x: VEC):
        for i in x:
            x.grad[i] = 0.0

    count, slots = integers(0), integers([0, 0])

    @oc.kernel
    def deal(x: VEC, count: oc.types.ndarray(dtype=oc.i32, ndim=0), slots: oc.types.ndarray(dtype=oc.i32, ndim=1)):
        for i in x:
            slots[oc.atomic_add(count[None], 1) % 2] = i

    @oc.kernel
    def time(slots: oc.types.ndarray(dtype=oc.i32, ndim=1)):
        for i in slots:
            slots[i] = oc.cast(oc.clock_counter() % 2, oc.i32)

    @oc.ad.grad_replaced
    def replaced():
        bend(x, y)

    def loop(step, **options):
        with oc.ad.Tape(loss, memory="1KB", **options):
            for _ in range(5):
                step()
                bend(x, y)
                bend(y, x)
            distance(x, loss)

    for step, text in (
        (lambda: shake(x, y), "draws random numbers"),
        (lambda: deal(x, count, slots), "uses what atomic updates found"),
        (lambda: time(slots), "reads the clock"),
        (replaced, "gradients of their own"),
        (lambda: oc.ad.checkpoint(lambda number: bend(x, y), 3, [(x, y)]), "gradients of their own"),
        (lambda: x.fill(0.1), "those of|need"),
    ):
        with pytest.raises(oc.OctantsRuntimeError, match=rf"OC1105(.|\n)*({text})"):
            loop(step)
    with pytest.raises(oc.OctantsRuntimeError, match="OC1105(.|\n)*holds derivatives"):
        loop(oc.ad.no_grad(lambda: clear_derivatives(x)))
    with pytest.raises(oc.OctantsRuntimeError, match="nested"), oc.ad.Tape(loss, memory=100):
        loop(lambda: None)


def test_another_state_is_refused_with_the_line(arch):
    """A view writes what no log knows of."""
    table, x, y, loss = np.array([0.5, 0.25]), made([0.3, 0.7]), made([0.0, 0.0]), made(0.0)
    R = oc.types.ndarray(dtype=oc.f64, ndim=1)

    @oc.kernel
    def bend(x: VEC, y: VEC, table: R):
        for i in x:
            y[i] = oc.sin(x[i]) * table[i]

    with pytest.raises(oc.OctantsRuntimeError, match=r"`bend`, called at .*test_tape_in_bounded_memory(.|\n)*`table`"), oc.ad.Tape(loss, memory="1KB"):  # fmt: skip
        for number in range(5):
            bend(x, y, table)
            bend(y, x, table)
            table[0] = 0.1 * number
        distance(x, loss)


def test_what_atomics_found_in_order_is_the_same_again(arch):
    """Statements outside of loops deal the places out: they are the same each time."""

    @oc.kernel
    def turn(x: VEC, y: VEC, count: oc.types.ndarray(dtype=oc.i32, ndim=0)):
        for i in oc.static(range(2)):
            place = oc.atomic_add(count[None], 1)
            y[place % 2] = oc.sin(x[i]) * (1.0 + 0.1 * place)

    def run(**options):
        loss, count = made(0.0), integers(1)
        rows = [made([0.3, 0.7]), *(made([0.0, 0.0]) for _ in range(12))]
        with oc.ad.Tape(loss, **options) as tape:
            for number in range(12):
                turn(*([rows[number % 2], rows[1 - number % 2]] if options else rows[number : number + 2]), count)
            distance(rows[0 if options else 12], loss)
        return tape, loss[None], rows[0].grad.to_numpy(), count[None]

    tape, *found = run(memory=200)
    assert tape.calls_again > 0
    require_same(found, run()[1:], 1e-14)


def test_elements_of_vectors_that_the_host_writes_are_those_of_the_time(arch):
    def run(memory):
        x, loss = made([0.3, 0.7]), made(0.0)
        force = oc.Vector.field(2, oc.f64, shape=3)

        @oc.kernel
        def push(x: VEC):
            for i in x:
                x[i] = oc.sin(x[i] + force[1][i])

        with oc.ad.Tape(loss, memory=memory) as tape:
            for number in range(8):
                force[1] = oc.Vector([0.1 * number, 0.4 - 0.05 * number])
                push(x)
            distance(x, loss)
        return tape, loss[None], x.grad.to_numpy()

    tape, *found = run(200)
    assert tape.calls_again > 0
    require_same(found, run("1MB")[1:], 1e-14)
    x, derivative = np.array([0.3, 0.7]), np.ones(2)
    for number in range(8):
        inner = x + np.array([0.1 * number, 0.4 - 0.05 * number])
        x, derivative = np.sin(inner), derivative * np.cos(inner)
    np.testing.assert_allclose(found[1], derivative * 2 * (x - 0.25), rtol=1e-12)


def test_whole_numbers_are_compared_to_the_last_digit(arch):
    """Numbers that are added in any order may differ a little when they are added again; whole ones may not."""
    table, x, y, loss = np.array([1_000_000, 7]), made([0.3, 0.7]), made([0.0, 0.0]), made(0.0)
    R = oc.types.ndarray(dtype=oc.i64, ndim=1)

    @oc.kernel
    def bend(x: VEC, y: VEC, table: R):
        for i in x:
            y[i] = oc.sin(x[i]) * oc.cast(table[i] % 10 + 1, oc.f64)
        for i in x:
            table[0] += 10

    with pytest.raises(oc.OctantsRuntimeError, match=r"OC1105(.|\n)*another state(.|\n)*`bend`, called at"), oc.ad.Tape(loss, memory="1KB"):  # fmt: skip
        for _ in range(5):
            bend(x, y, table)
            bend(y, x, table)
            table[0] += 1
        distance(x, loss)


@pytest.mark.host_devices("the host looks at memory without a copy")
def test_writes_through_views_are_found():
    x, y, loss = made([0.3, 0.7]), made([0.0, 0.0]), made(0.0)
    factor = made([1.0, 1.0], needs_grad=False)

    @oc.kernel
    def bend(x: VEC, y: VEC, factor: VEC):
        for i in x:
            y[i] = oc.sin(x[i]) * factor[i]

    view = factor.to_numpy(copy=False)
    with pytest.raises(oc.OctantsRuntimeError, match=r"OC1105(.|\n)*another state(.|\n)*`bend`, called at .*test_tape_in_bounded_memory"), oc.ad.Tape(loss, memory=200):  # fmt: skip
        for number in range(5):
            bend(x, y, factor)
            bend(y, x, factor)
            view[0] = 0.1 * number
        distance(x, loss)
