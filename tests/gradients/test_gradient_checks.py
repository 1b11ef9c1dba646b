"""`grad_check` and `gradcheck` start from the same values each time, and take their tolerances as given."""

import numpy as np
import pytest
from gradient_values import VEC

import octants as oc


@oc.kernel
def square(x: VEC):
    for i in x:
        x[i] = x[i] * x[i]


@oc.kernel
def add_up(x: VEC, total: VEC):
    for i in x:
        total[0] += x[i]


@oc.kernel
def scaled(total: VEC, loss: VEC):
    loss[0] += total[0] * total[0]


def arrays():
    x, total, loss = (oc.ndarray(oc.f64, n, needs_grad=True) for n in (2, 1, 1))
    x.from_numpy(np.array([0.5, 1.5]))
    return x, total, loss


def test_kernels_in_place_and_sums_are_checked_from_the_same_values(arch):
    x, total, loss = arrays()
    with oc.ad.Tape(loss, grad_check=[x]):
        square(x)
        add_up(x, total)
        scaled(total, loss)
    np.testing.assert_allclose(x.to_numpy(), [0.25, 2.25])
    np.testing.assert_allclose([total[0], loss[0]], [2.5, 6.25])
    x, total, loss = arrays()

    def program():
        square(x)
        add_up(x, total)
        scaled(total, loss)

    assert oc.ad.gradcheck(program, x, loss)
    np.testing.assert_allclose([x[0], total[0], loss[0]], [0.5, 0.0, 0.0])


@oc.data_oriented
class Rate:
    """A number that the host changes."""

    def __init__(self):
        self.rate = 1.0

    @oc.kernel
    def add(self, x: VEC, loss: VEC):
        for i in x:
            loss[0] += self.rate * x[i] * x[i]


def test_calls_that_cannot_run_again_are_told(arch):
    (x, _, loss), model = arrays(), Rate()
    with pytest.raises(AssertionError, match="come to another loss"), oc.ad.Tape(loss, grad_check=[x]):
        model.add(x, loss)
        model.rate = 5.0
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * x.to_numpy())


def test_a_tolerance_of_zero_is_none(arch):
    x, total, loss = arrays()
    with pytest.raises(AssertionError, match="not the differences"):
        oc.ad.gradcheck(lambda: (square(x), add_up(x, total), scaled(total, loss)), x, loss, rtol=0, atol=0)


def test_functions_with_gradients_by_hand_are_checked_from_the_same_values(arch):
    A = oc.types.ndarray(dtype=oc.f64, ndim=1)
    x, y, loss = (oc.ndarray(oc.f64, n, needs_grad=True) for n in (3, 3, 1))
    x.from_numpy(np.array([0.1, 0.2, 0.3]))

    @oc.kernel
    def add_sine(x: A, y: A):
        for i in x:
            y[i] += oc.sin(x[i])

    @oc.kernel
    def add_squares(y: A, loss: A):
        for i in y:
            loss[0] += y[i] * y[i]

    @oc.ad.grad_replaced
    def function(x, y):
        add_sine(x, y)

    oc.ad.grad_for(function)(lambda x, y: add_sine.grad(x, y))
    with oc.ad.Tape(loss, grad_check=[x]):
        function(x, y)
        add_squares(y, loss)
