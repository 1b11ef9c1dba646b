"""Numbers that the host reads of arrays and hands to launches: what would flow through it is refused, and what the program means as a constant is one."""

import dataclasses

import numpy as np
import pytest

import octants as oc

VEC = oc.types.ndarray(dtype=oc.f64, ndim=1)
VALUES = np.random.default_rng(3).uniform(0.5, 1.5, 4)


@oc.kernel
def scale(x: VEC, factor: oc.f64, y: VEC):
    for i in x:
        y[i] = factor * x[i]


@oc.kernel
def add_up(y: VEC, loss: VEC):
    for i in y:
        loss[0] += y[i] * y[i]


@oc.kernel
def add_some(y: VEC, count: oc.i32, loss: VEC):
    for i in range(count):
        loss[0] += y[i] * y[i]


@dataclasses.dataclass
class Factors:
    by: oc.f64


@oc.kernel
def scale_by_member(x: VEC, factors: Factors, y: VEC):
    for i in x:
        y[i] = factors.by * x[i]


def array(values=VALUES, **kinds):
    made = oc.ndarray(oc.f64, len(values), needs_grad=True, **kinds)
    made.from_numpy(np.array(values))
    return made


def of_numbers():
    return array(), array(np.zeros(4)), array([0.0])


def by_element(x):
    return x[2]


def by_numpy(x):
    return float(x.to_numpy()[2])


def in_a_vector(x):
    return oc.Vector([x[2], 1.0])[0]


@pytest.mark.parametrize("read", [by_element, by_numpy, in_a_vector])
def test_a_number_of_an_array_with_gradients_is_not_handed_on(arch, read):
    x, y, loss = of_numbers()
    text = r"\[OC1105\].*`scale`, called at .*py:\d+, takes a number that the host has read of .* at .*py:\d+"
    with pytest.raises(oc.OctantsRuntimeError, match=text), oc.ad.Tape(loss):
        scale(x, read(x), y)
        add_up(y, loss)


def test_members_count_and_so_do_results_of_kernels(arch):
    x, y, loss = of_numbers()
    with pytest.raises(oc.OctantsRuntimeError, match=r"\[OC1105\].*`scale_by_member`"), oc.ad.Tape(loss):
        scale_by_member(x, Factors(x[1]), y)
        add_up(y, loss)
    with pytest.raises(oc.OctantsRuntimeError, match=r"\[OC1105\].*`scale`"), oc.ad.Tape(loss):
        scale(x, 0.7, y)
        scale(x, y[0], y)
        add_up(y, loss)


def test_what_the_program_means_as_a_constant_is_one(arch):
    x, y, loss = of_numbers()
    other, bare = array(VALUES[::-1]), oc.ndarray(oc.f64, 1)
    count = oc.field(oc.i32, ())
    count[None] = 3
    bare[0] = VALUES[0]

    def gradient(number):
        with oc.ad.Tape(loss):
            scale(x, number(), y)
            add_up(y, loss)
        np.testing.assert_allclose(x.grad.to_numpy(), 2 * factor**2 * VALUES)

    factor = x[3]
    gradient(lambda: factor)
    gradient(oc.ad.no_grad(lambda: x[3]))
    # Nothing of this tape flows to it, or it has no gradients.
    factor = other[1]
    gradient(lambda: other[1])
    factor = bare[0]
    gradient(lambda: bare[0])
    # A look that nobody hands on.
    factor = 0.25
    gradient(lambda: 0.25 if x[0] else 0.5)
    with oc.ad.Tape(loss):
        scale(x, 1.0, y)
        add_some(y, count[None], loss)
    np.testing.assert_allclose(x.grad.to_numpy()[:3], 2 * VALUES[:3])


def test_a_constant_that_happens_to_be_the_same_is_none_of_it(arch):
    x, y, loss = of_numbers()
    x.fill(0.125)
    with oc.ad.Tape(loss):
        assert x[0] == 0.125
        scale(x, 0.125, y)
        add_up(y, loss)
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * 0.125**3)


def test_gradients_of_other_tapes_are_none_of_this_one(arch):
    x, y, loss = of_numbers()
    other = array(VALUES[::-1])
    other.grad.fill(1.0)
    with oc.ad.Tape(loss, clear_gradients=False):
        scale(x, other[1], y)
        add_up(y, loss)


def test_forward_mode(arch):
    x, y, loss = array(needs_dual=True), array(np.zeros(4), needs_dual=True), array([0.0], needs_dual=True)
    with (
        pytest.raises(oc.OctantsRuntimeError, match=r"\[OC1105\].*`scale`"),
        oc.ad.FwdMode(loss=loss, param=x, seed=np.ones(4)),
    ):
        scale(x, x[2], y)
    factor = x[2]
    y.fill(0)
    with oc.ad.FwdMode(loss=loss, param=x, seed=np.ones(4)):
        scale(x, factor, y)
        add_up(y, loss)
    np.testing.assert_allclose(loss.dual[0], 2 * factor**2 * VALUES.sum())
