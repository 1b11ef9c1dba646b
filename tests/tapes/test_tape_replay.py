"""The way back through a tape replays what happened: values that launches read from the host are those of the launch."""

import dataclasses

import numpy as np
import pytest

import octants as oc

RATE = 2.0


def scalar(value=0.0, **kwargs):
    array = oc.ndarray(oc.f64, (1,), **kwargs)
    array.fill(value)
    return array


def differences(run, x, step=1e-6):
    """Central differences of what `run` gives, for each element of x."""
    start = x.to_numpy()
    found = np.zeros(start.shape)
    for index in np.ndindex(start.shape):
        values = []
        for sign in (1, -1):
            moved = start.copy()
            moved[index] += sign * step
            x.from_numpy(moved)
            values.append(run())
        found[index] = (values[0] - values[1]) / (2 * step)
    x.from_numpy(start)
    return found


def check(program, x, loss):
    """The gradients of a program's loss are its differences. The program sets all that it changes to what it was."""

    def run():
        loss.fill(0)
        program()
        return float(loss.to_numpy().reshape(()))

    expected = differences(run, x)
    for _ in range(2):
        with oc.ad.Tape(loss):
            program()
        np.testing.assert_allclose(x.grad.to_numpy(), expected, rtol=1e-5, atol=1e-7)


@pytest.fixture
def x():
    array = oc.ndarray(oc.f64, (3,), needs_grad=True)
    array.from_numpy(np.array([0.5, -1.0, 2.0]))
    return array


@pytest.fixture
def loss():
    return oc.ndarray(oc.f64, (1,), needs_grad=True)


@oc.data_oriented
class Model:
    """Numbers and an array that the host changes between launches."""

    def __init__(self, rate, weights=None):
        self.rate = rate
        self.weights = weights

    @oc.kernel
    def add(self, x: oc.types.ndarray(), loss: oc.types.ndarray()):
        for i in x:
            loss[0] += self.rate * x[i] * x[i]

    @oc.kernel
    def weigh(self, x: oc.types.ndarray(), loss: oc.types.ndarray()):
        for i in x:
            loss[0] += self.weights[i] * x[i]


def test_numbers_of_data_oriented_objects_are_those_of_the_launch(x, loss):
    model = Model(1.0)

    def program():
        for rate in (1.0, 3.0, 7.0):
            model.rate = rate
            model.add(x, loss)
        model.rate = 100.0

    check(program, x, loss)


def test_arrays_that_an_object_swaps_are_those_of_the_launch(x, loss):
    first = oc.ndarray(oc.f64, (3,), needs_grad=True)
    second = oc.ndarray(oc.f64, (3,), needs_grad=True)
    first.from_numpy(np.array([1.0, 2.0, 3.0]))
    second.from_numpy(np.array([5.0, 7.0, 11.0]))
    model = Model(1.0)

    def program():
        for weights in (first, second):
            model.weights = weights
            model.weigh(x, loss)
        model.weights = first

    check(program, x, loss)
    np.testing.assert_allclose(first.grad.to_numpy(), x.to_numpy())
    np.testing.assert_allclose(second.grad.to_numpy(), x.to_numpy())


@oc.data_oriented
class PingPong:
    """Two arrays that take turns."""

    def __init__(self):
        self.now = oc.field(oc.f64, 3, needs_grad=True)
        self.after = oc.field(oc.f64, 3, needs_grad=True)

    @oc.kernel
    def start(self, x: oc.types.ndarray()):
        for i in range(3):
            self.now[i] = x[i]

    @oc.kernel
    def square(self):
        for i in self.now:
            self.after[i] = self.now[i] * self.now[i]

    @oc.kernel
    def sum(self, loss: oc.types.ndarray()):
        for i in self.now:
            loss[0] += self.now[i]


def test_fields_that_an_object_swaps_are_those_of_the_launch(x, loss):
    state = PingPong()

    def program():
        state.start(x)
        state.square()
        state.now, state.after = state.after, state.now
        state.sum(loss)

    check(program, x, loss)


@oc.kernel
def scaled_sum(x: oc.types.ndarray(), scale: oc.types.vector(2, oc.f64), loss: oc.types.ndarray()):
    for i in x:
        loss[0] += scale[0] * x[i] * x[i] + scale[1] * x[i]


def test_vectors_that_are_changed_in_place_are_those_of_the_launch(x, loss):
    scale = oc.Vector([0.0, 0.0], oc.f64)

    def program():
        for a in (1.0, 3.0):
            scale[0], scale[1] = a, 2 * a
            scaled_sum(x, scale, loss)
        scale[0] = scale[1] = -1.0

    check(program, x, loss)


Pair = oc.types.struct(a=oc.f64, b=oc.f64)


@oc.kernel
def paired_sum(x: oc.types.ndarray(), pair: Pair, loss: oc.types.ndarray()):
    for i in x:
        loss[0] += pair.a * x[i] * x[i] + pair.b * x[i]


def test_structs_that_are_changed_in_place_are_those_of_the_launch(x, loss):
    pair = Pair(a=0.0, b=0.0)

    def program():
        for a in (1.0, 3.0):
            pair.a, pair.b = a, 2 * a
            paired_sum(x, pair, loss)
        pair.a = pair.b = -1.0

    check(program, x, loss)


@dataclasses.dataclass
class Numbers:
    """Numbers and an array by value."""

    rate: oc.f64
    weights: oc.types.ndarray()


@dataclasses.dataclass(slots=True)
class SlottedNumbers:
    """The same without a dictionary."""

    rate: oc.f64
    weights: oc.types.ndarray()


@oc.kernel
def weighted_sum(numbers: Numbers, x: oc.types.ndarray(), loss: oc.types.ndarray()):
    for i in x:
        loss[0] += numbers.rate * numbers.weights[i] * x[i] * x[i]


@oc.kernel
def slotted_sum(numbers: SlottedNumbers, x: oc.types.ndarray(), loss: oc.types.ndarray()):
    for i in x:
        loss[0] += numbers.rate * numbers.weights[i] * x[i] * x[i]


@pytest.mark.parametrize(("made", "kernel"), [(Numbers, weighted_sum), (SlottedNumbers, slotted_sum)])
def test_members_of_dataclasses_are_those_of_the_launch(x, loss, made, kernel):
    arrays = [oc.ndarray(oc.f64, (3,), needs_grad=True) for _ in range(2)]
    arrays[0].from_numpy(np.array([1.0, 2.0, 3.0]))
    arrays[1].from_numpy(np.array([5.0, 7.0, 11.0]))
    numbers = made(1.0, arrays[0])

    def program():
        for rate, weights in zip((2.0, 5.0), arrays, strict=True):
            numbers.rate, numbers.weights = rate, weights
            kernel(numbers, x, loss)
        numbers.rate = 0.0

    check(program, x, loss)
    np.testing.assert_allclose(arrays[1].grad.to_numpy(), 5 * x.to_numpy() ** 2)


@oc.kernel
def table_sum(x: oc.types.ndarray(), table: oc.types.ndarray(), loss: oc.types.ndarray()):
    for i in x:
        loss[0] += table[i] * x[i] * x[i]


@oc.kernel
def row_sum(x: oc.types.ndarray(), table: oc.types.ndarray(), row: oc.i32, loss: oc.types.ndarray()):
    for i in x:
        loss[0] += table[row, i] * x[i] * x[i]


@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_a_numpy_buffer_that_is_refilled_is_refused_at_the_line_of_the_launch(x, loss, order):
    table = np.zeros(6)[::2] if order == "strided" else np.zeros(3, order=order)
    with pytest.raises(oc.OctantsRuntimeError, match=r"test_tape_replay.py:\d+, need what it saw of `table`") as caught:
        with oc.ad.Tape(loss):
            for factor in (1.0, 2.0):
                table[:] = factor
                table_sum(x, table, loss)
    assert caught.value.code == "OC1105"


def test_a_numpy_buffer_that_holds_the_same_is_no_change(x, loss):
    table = np.zeros(3)

    def program():
        for _ in range(2):
            table[:] = 3.0
            table_sum(x, table, loss)

    check(program, x, loss)


def test_rows_of_a_numpy_buffer_are_told_apart(x, loss):
    table = np.zeros((4, 3))

    def program():
        table[:] = 0
        for row in range(4):
            table[row] = row + 1.0
            row_sum(x, table, row, loss)

    check(program, x, loss)


def test_a_numpy_array_that_is_resized_is_refused(x, loss):
    table = np.ones(3)
    with pytest.raises(oc.OctantsRuntimeError, match="`table`"):
        with oc.ad.Tape(loss):
            table_sum(x, table, loss)
            table.resize(100_000, refcheck=False)


def test_globals_are_those_of_the_compiled_kernel(x, loss):
    global RATE

    @oc.kernel
    def scale(x: oc.types.ndarray(), loss: oc.types.ndarray()):
        for i in x:
            loss[0] += RATE * x[i] * x[i]

    try:
        RATE = 2.0
        loss.fill(0)
        scale(x, loss)
        RATE = 50.0
        loss.grad.fill(1)
        x.grad.fill(0)
        scale.grad(x, loss)
        np.testing.assert_allclose(x.grad.to_numpy(), 4 * x.to_numpy())
        RATE = 70.0
        check(lambda: scale(x, loss), x, loss)
        np.testing.assert_allclose(x.grad.to_numpy(), 4 * x.to_numpy())
    finally:
        RATE = 2.0


def test_a_global_that_changes_inside_a_tape_is_that_of_the_launch(x, loss):
    global RATE

    @oc.kernel
    def scale(x: oc.types.ndarray(), loss: oc.types.ndarray()):
        for i in x:
            loss[0] += RATE * x[i] * x[i]

    try:
        RATE = 3.0
        with oc.ad.Tape(loss):
            scale(x, loss)
            RATE = 50.0
        np.testing.assert_allclose(x.grad.to_numpy(), 6 * x.to_numpy())
    finally:
        RATE = 2.0


def test_second_derivatives_are_those_of_the_launch():
    x = oc.ndarray(oc.f64, (3,), needs_grad=True, needs_dual=True)
    loss = oc.ndarray(oc.f64, (1,), needs_grad=True, needs_dual=True)
    x.from_numpy(np.array([0.5, -1.0, 2.0]))
    model = Model(1.0)

    def program():
        for rate in (1.0, 3.0):
            model.rate = rate
            model.add(x, loss)
        model.rate = 100.0

    _, gradients, products = oc.ad.hessian_vector_product(program, loss, x, np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(gradients, 8 * x.to_numpy())
    np.testing.assert_allclose(products, 8 * np.array([1.0, 2.0, 3.0]))
