"""Tapes, what programs do around them, and forward mode."""

import subprocess
import sys
import threading

import numpy as np
import pytest
from gradient_values import INTS, SCALAR, VEC, X, integers, made, square

import octants as oc

# ---- the tape -------------------------------------------------------------------------------------------------------------


def test_tape_clears_and_seeds(arch):
    x, loss = made([1.0, 2.0]), made(7.0)
    x.grad.fill(5.0)
    with oc.ad.Tape(loss):
        square(x, loss)
    assert loss[None] == 5.0
    np.testing.assert_array_equal(x.grad.to_numpy(), [2.0, 4.0])
    with oc.ad.Tape(loss, clear_gradients=False):
        square(x, loss)
    np.testing.assert_array_equal(x.grad.to_numpy(), [4.0, 8.0])
    with oc.ad.Tape(loss, grad_check=[x]):
        square(x, loss)
    np.testing.assert_array_equal(x.grad.to_numpy(), [2.0, 4.0])


def test_tape_without_a_loss(arch):
    x, loss = made([1.0, 2.0]), made(0.0)
    with oc.ad.Tape(clear_gradients=False) as tape:
        square(x, loss)
    np.testing.assert_array_equal(x.grad.to_numpy(), [0.0, 0.0])
    loss.grad.fill(3.0)
    tape.grad()
    np.testing.assert_array_equal(x.grad.to_numpy(), [6.0, 12.0])
    with pytest.raises(AssertionError, match="only once"):
        tape.grad()


def test_wrong_losses_and_tapes():
    for loss, text in (
        (oc.field(oc.f32, shape=2, needs_grad=True), "only contains one element"),
        (oc.Vector.field(2, oc.f32, shape=(), needs_grad=True), "only contains one element"),
        (oc.field(oc.f32, shape=()), "Gradients of loss are not allocated, please set"),
        (oc.ndarray(oc.f32, 2, needs_grad=True), "only one element"),
        (oc.ndarray(oc.f32, 1), "Gradients of loss are not allocated, please set"),
        (3.0, "not float"),
    ):
        with pytest.raises(RuntimeError, match=text):
            oc.ad.Tape(loss).__enter__()
    loss = made(0.0)
    tape = oc.ad.Tape(loss)
    with pytest.raises(AssertionError, match="entered before"):
        tape.grad()
    with tape, pytest.raises(RuntimeError, match="nested"):
        oc.ad.Tape(loss).__enter__()
    with pytest.raises(AssertionError, match="only once"):
        tape.__enter__()
    with pytest.warns(UserWarning, match="debug"):
        oc.ad.Tape(loss, validation=True)


def test_exception_in_a_tape():
    x, loss = made([1.0, 2.0]), made(0.0)
    with pytest.raises(KeyError), oc.ad.Tape(loss) as tape:
        square(x, loss)
        raise KeyError
    np.testing.assert_array_equal(x.grad.to_numpy(), [0.0, 0.0])
    assert not tape.gradient_evaluated
    with oc.ad.Tape(loss):
        square(x, loss)
    np.testing.assert_array_equal(x.grad.to_numpy(), [2.0, 4.0])


def test_gradients_of_a_failed_or_open_tape():
    x, loss = made([1.0, 2.0]), made(0.0)
    with pytest.raises(KeyError), oc.ad.Tape(loss) as tape:
        square(x, loss)
        raise KeyError
    with pytest.raises(AssertionError, match="ended with an exception"):
        tape.grad()
    with oc.ad.Tape(clear_gradients=False) as tape, pytest.raises(AssertionError, match="when its block is over"):
        tape.grad()
    with pytest.raises(AssertionError, match="only once"), tape:
        pass


def test_an_exception_of_a_kernel_leaves_the_tape(arch):
    x, loss = made([1.0, 2.0]), made(0.0)
    with pytest.raises(oc.OctantsSyntaxError), oc.ad.Tape(loss):
        square(x, loss, 3)
    assert oc._session.runtime.call_hook is None
    with oc.ad.Tape(loss):
        square(x, loss)
        with pytest.raises(oc.OctantsSyntaxError):
            square(x)
    np.testing.assert_array_equal(x.grad.to_numpy(), [2.0, 4.0])


def test_sessions_that_end_in_a_tape(arch):
    x, loss = made([1.0, 2.0]), made(0.0)
    with pytest.raises(oc.OctantsRuntimeError, match="session"), oc.ad.Tape(loss):
        square(x, loss)
        oc.init(arch=getattr(oc, arch), log_level="error")
    x, loss = made([1.0, 2.0]), made(0.0)
    with oc.ad.Tape(loss):
        square(x, loss)
    np.testing.assert_array_equal(x.grad.to_numpy(), [2.0, 4.0])


@pytest.mark.parametrize("end", [oc.init, oc.reset])
def test_a_tape_that_is_never_left_ends_with_its_session(arch, end):
    left = oc.ad.Tape(made(0.0))
    left.__enter__()
    end()
    oc.init(arch=getattr(oc, arch), log_level="error")
    x, loss = made([1.0, 2.0]), made(0.0)
    square(x, loss)
    assert left.calls == []
    with oc.ad.Tape(loss):
        square(x, loss)
    np.testing.assert_array_equal(x.grad.to_numpy(), [2.0, 4.0])


def test_fields_that_are_freed_in_a_tape(arch):
    x = oc.field(oc.f64, needs_grad=True)
    builder = oc.FieldsBuilder()
    builder.dense(oc.i, 2).place(x, x.grad)
    tree = builder.finalize()
    loss = made(0.0)

    @oc.kernel
    def f(loss: SCALAR):
        for i in range(2):
            loss[None] += x[i] * x[i]

    with pytest.raises(oc.OctantsRuntimeError, match="destroy"), oc.ad.Tape(loss):
        f(loss)
        tree.destroy()


def test_ndarrays_live_as_long_as_the_tape_needs_them(arch):
    loss = made(0.0)
    with oc.ad.Tape(loss):
        square(made([1.0, 2.0]), loss)
        others = [made([9.0, 9.0]) for _ in range(4)]
    assert loss[None] == 5.0 and len(others) == 4


def test_gradients_of_integers_are_refused():
    with pytest.raises(oc.OctantsRuntimeError, match="i32 is not supported for field"):
        oc.field(oc.i32, shape=2, needs_grad=True)
    with pytest.raises(oc.OctantsRuntimeError, match="i32 is not supported for ndarray"):
        oc.ndarray(oc.i32, 2, needs_grad=True)
    loss = oc.field(oc.i32, shape=())
    with pytest.raises(oc.OctantsRuntimeError, match="Gradients of loss are not allocated"):
        oc.ad.Tape(loss).__enter__()


@pytest.mark.filterwarnings("ignore:.*OC1007")
def test_kernels_that_have_no_gradients_are_refused_with_their_line(arch):
    x, loss = made([1.0, 2.0]), made(0.0)
    plain = made([0.0, 0.0], needs_grad=False)

    @oc.kernel
    def raced(x: VEC, loss: SCALAR):
        for i in x:
            loss[None] = x[i]  # line of the race

    @oc.kernel
    def lost(x: VEC, y: VEC):
        for i in x:
            y[i] = x[i] * 2.0  # line of the store

    for kernel, other, text in ((raced, loss, "line of the race"), (lost, plain, "line of the store")):
        with pytest.raises((oc.OctantsCompilationError, oc.OctantsRuntimeError), match=text), oc.ad.Tape(loss):
            kernel(x, other)


def test_kernels_for_graphs_have_gradients_as_others_do(arch):
    @oc.kernel(graph=True)
    def f(x: VEC, loss: SCALAR):
        for i in x:
            loss[None] += x[i] * x[i]

    x, loss = made([1.0, 2.0]), made(0.0)
    with oc.ad.Tape(loss):
        f(x, loss)
    np.testing.assert_array_equal(x.grad.to_numpy(), [2.0, 4.0])


def test_grad_check_finds_wrong_gradients():
    x, loss = made([1.0, 2.0]), made(0.0)

    @oc.ad.grad_replaced
    def forward():
        square(x, loss)

    @oc.ad.grad_for(forward)
    def backward():
        x.grad.fill(9.0)

    with pytest.raises(AssertionError, match="not the differences"), oc.ad.Tape(loss, grad_check=[x]):
        forward()


def test_no_grad_and_replaced_gradients(arch):
    x, loss = made([1.0, 2.0]), made(0.0)

    @oc.ad.no_grad
    def hidden():
        square(x, loss)
        return 3

    with oc.ad.Tape(loss):
        assert hidden() == 3
        square(x, loss)
    np.testing.assert_array_equal(x.grad.to_numpy(), [2.0, 4.0])

    class Model:
        @oc.ad.grad_replaced
        def run(self, k):
            square(x, loss)

        @oc.ad.grad_for(run)
        def back(self, k):
            x.grad.fill(k)

        @oc.ad.grad_replaced
        def other(self):
            square(x, loss)

    with oc.ad.Tape(loss):
        Model().run(k=8.0)
    np.testing.assert_array_equal(x.grad.to_numpy(), [8.0, 8.0])
    with pytest.raises(RuntimeError, match="oc.ad.grad_for"), oc.ad.Tape(loss):
        Model().other()
    with pytest.raises(RuntimeError, match="must be decorated by oc.ad.grad_replaced"):
        oc.ad.grad_for(square)


def test_tape_records_its_own_thread_alone():
    x, other, loss = made([1.0, 2.0]), made([1.0, 2.0]), made(0.0)
    with oc.ad.Tape(loss) as tape:
        square(x, loss)
        thread = threading.Thread(target=square, args=(other, made(0.0)))
        thread.start()
        thread.join()
    assert len(tape.calls) == 1


def test_clear_all_gradients(arch):
    x = oc.Vector.field(2, oc.f32, shape=3, needs_grad=True, needs_dual=True)
    y = oc.field(oc.f32, shape=(), needs_grad=True)
    for field in (x.grad, x.dual, y.grad):
        field.fill(1.0)
    oc.ad.clear_all_gradients()
    assert not x.grad.to_numpy().any()
    assert y.grad[None] == 0.0
    assert x.dual.to_numpy().all()
    oc.ad.clear_all_gradients("dual")
    assert not x.dual.to_numpy().any()


def test_value_and_grad(arch):
    x, loss = made([1.0, 2.0]), made(0.0)
    step = oc.ad.value_and_grad(lambda k: square(x, loss), loss, x)
    for _ in range(2):
        value, (gradients,) = step(3)
        assert value == 5.0
        assert gradients.tolist() == [2.0, 4.0]
    with pytest.raises(oc.OctantsRuntimeError, match="needs_grad=True"):
        oc.ad.value_and_grad(square, loss, made([1.0], needs_grad=False))
    with pytest.raises(oc.OctantsRuntimeError, match="the loss of a Tape is .*, not NoneType"):
        oc.ad.value_and_grad(square, None, x)
    for bad in 3, made([1.0], needs_grad=False), oc.field(oc.i32, 3):
        with pytest.raises(oc.OctantsRuntimeError, match="the members of grad_check are"):
            oc.ad.Tape(loss, grad_check=[bad])


def test_gradcheck(arch):
    m = oc.Matrix.field(2, 2, oc.f64, shape=2, needs_grad=True)
    x, y, middle = made(X), made(np.ones(4)), made(np.zeros(4))
    m.from_numpy(np.arange(8.0).reshape(2, 2, 2) / 8)

    @oc.kernel
    def first(x: VEC, middle: VEC):
        for i in x:
            middle[i] = oc.sin(x[i]) * m[i // 2][i % 2, 1]

    @oc.kernel
    def second(middle: VEC, y: VEC):
        for i in middle:
            y[i] += middle[i] ** 2

    def both():
        first(x, middle)
        second(middle, y)

    assert oc.ad.gradcheck(both, [x, m], y)
    assert x.to_numpy().tolist() == X
    assert y.to_numpy().tolist() == [1.0] * 4

    @oc.ad.no_grad
    def hidden():
        second(middle, y)

    def wrong():
        first(x, middle)
        hidden()

    with pytest.raises(AssertionError, match="not the differences"):
        oc.ad.gradcheck(wrong, x, y)


# ---- forward mode ---------------------------------------------------------------------------------------------------------


def test_forward_mode_with_any_loop(arch):
    x = oc.field(oc.f64, shape=3, needs_dual=True)
    y = oc.field(oc.f64, shape=3, needs_dual=True)
    n = oc.field(oc.i32, shape=())

    @oc.kernel
    def f() -> oc.f64:
        for i in x:
            v = x[i]
            k = 0
            while k < n[None]:
                k += 1
                if k == 3:
                    continue
                v = oc.sin(v) + x[i]
                if v > 10.0:
                    break
            y[i] = v * x[2]
        return y[0]

    n[None] = 6
    xs = np.array([0.3, 0.5, 0.8])
    x.from_numpy(xs)
    seed = [0.5, 0.0, 1.0]
    with oc.ad.FwdMode(loss=[y], param=x, seed=seed):
        first = f()
    assert first == y[0]
    duals, values = y.dual.to_numpy(), []
    assert not x.dual.to_numpy().any()
    for sign in (1, -1):
        x.from_numpy(xs + sign * 1e-6 * np.array(seed))
        f()
        values.append(y.to_numpy())
    np.testing.assert_allclose(duals, (values[0] - values[1]) / 2e-6, rtol=1e-6)


def test_forward_mode_of_what_is_updated_in_place(arch):
    x = oc.field(oc.f64, shape=2, needs_dual=True)

    @oc.kernel
    def f():
        for i in x:
            x[i] = oc.sin(x[i]) * x[i]

    xs = np.array([0.3, 0.8])
    x.from_numpy(xs)
    with oc.ad.FwdMode(loss=x, param=x, seed=[1.0, 2.0]):
        f()
    np.testing.assert_allclose(x.dual.to_numpy(), (np.cos(xs) * xs + np.sin(xs)) * [1, 2], rtol=1e-12)


def test_forward_mode_refusals():
    x = oc.field(oc.f32, shape=3, needs_dual=True)
    y = oc.field(oc.f32, shape=(), needs_dual=True)
    plain = oc.field(oc.f32, shape=(), name="plain")

    @oc.kernel
    def f():
        plain[None] = x[0]

    with pytest.raises(RuntimeError, match="`seed` is not set"):
        oc.ad.FwdMode(y, x).__enter__()
    with pytest.raises(AssertionError, match="2 numbers"):
        oc.ad.FwdMode(y, x, seed=[1.0, 2.0]).__enter__()
    with pytest.raises(RuntimeError, match="Duals of"):
        oc.ad.FwdMode(plain, x, seed=[1.0, 0.0, 0.0]).__enter__()
    mode = oc.ad.FwdMode(y, x, seed=[1.0, 0.0, 0.0])
    with pytest.raises(oc.OctantsRuntimeError, match=r"\[OC1102\].*`plain`"), mode:
        f()
    with pytest.raises(AssertionError, match="only once"):
        mode.__enter__()
    f()


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_what_iterations_make_together(arch, mode):
    """The greatest, the least and the product, by atomic updates and by assignments that mean these."""
    x = oc.field(oc.f64, shape=6, needs_dual=True, needs_grad=True)
    y = oc.field(oc.f64, shape=5, needs_dual=True, needs_grad=True)

    @oc.kernel
    def f():
        for i in x:
            if i < 4:
                oc.atomic_max(y[0], oc.sin(x[i]) * x[5])
            oc.atomic_min(y[1], x[i] * x[0])
            y[2] *= x[i] + x[1]
        largest = x[4] * 0.5
        product = x[0]
        for i in x:
            largest = max(largest, x[i] * x[i])
            product *= x[i]
        y[3] = largest * x[2]
        y[4] = product

    xs, seed = np.array([0.3, 1.1, 0.7, 0.9, 2.5, 0.8]), np.array([0.5, -1.0, 2.0, 0.25, 1.5, -0.75])
    ys = np.array([0.1, 5.0, 1.5, 0.0, 0.0])

    def run(values):
        x.from_numpy(values)
        y.from_numpy(ys)
        f()
        return y.to_numpy()

    along = (run(xs + 1e-6 * seed) - run(xs - 1e-6 * seed)) / 2e-6
    x.from_numpy(xs)
    y.from_numpy(ys)
    if mode == "forward":
        with oc.ad.FwdMode(loss=y, param=x, seed=list(seed)):
            f()
        np.testing.assert_allclose(y.dual.to_numpy(), along, rtol=1e-6)
        np.testing.assert_array_equal(y.to_numpy(), run(xs))
    else:
        weights = np.array([1.0, -2.0, 0.5, 3.0, 1.5])
        with oc.ad.Tape() as tape:
            f()
        y.grad.from_numpy(weights)
        tape.grad()
        np.testing.assert_allclose(x.grad.to_numpy() @ seed, weights @ along, rtol=1e-6)


WARNED_PROGRAM = """
import warnings
import octants as oc
oc.init(arch=oc.cpu, log_level="error")
x, loss = oc.field(oc.f64, 2, needs_grad=True), oc.field(oc.f64, (), needs_grad=True)
plain = oc.field(oc.f64, 2)

@oc.kernel
def store():
    for i in x:
        plain[i] = 2.0 * x[i]
        loss[None] += x[i]

@oc.kernel
def total():
    for i in x:
        loss[None] += plain[i] + x[i]

shown = []

def show(message, *_):
    shown.append(str(message))
    # It is code of the program's, which may launch in the tape as well.
    store()

warnings.simplefilter("always")
warnings.showwarning = show
with oc.ad.Tape(loss):
    store()
    total()
assert any("Gradients of `plain` are not allocated" in text for text in shown), shown
print("over")
"""


@pytest.mark.no_device
def test_who_shows_a_warning_of_a_tape_may_launch_in_it(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(WARNED_PROGRAM)
    ran = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120)
    assert ran.stdout == "over\n", ran.stderr


@pytest.mark.parametrize("grad", [False, True])
def test_kernels_that_store_the_time_or_random_numbers(arch, grad):
    """Their derivatives need neither: nothing of the loss follows from what the clock says, and what the numbers were stands in the array."""

    @oc.kernel
    def draw(weights: VEC, ticks: INTS):
        for i in weights:
            weights[i] = oc.random(oc.f64)
        for i in ticks:
            ticks[i] = oc.cast(oc.clock_counter() % 2, oc.i32)

    @oc.kernel
    def weighted(x: VEC, weights: VEC, loss: SCALAR):
        for i in x:
            loss[None] += weights[i] * x[i] ** 2

    x, weights, loss = made([1.0, 2.0]), made([0.0, 0.0], needs_grad=grad), made(0.0)
    with oc.ad.Tape(loss):
        draw(weights, integers([0, 0]))
        weighted(x, weights, loss)
    drawn = weights.to_numpy()
    assert drawn.any()
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * drawn * [1.0, 2.0])
