"""Duals of ndarrays, and forward mode over reverse mode: products of second derivatives with vectors."""

import numpy as np
import pytest
from gradient_values import SCALAR, VEC

import octants as oc


def array(values, **options):
    values = np.asarray(values, dtype=np.float64)
    made = oc.ndarray(oc.f64, values.shape, **({"needs_grad": True, "needs_dual": True} | options))
    made.from_numpy(values)
    return made


def test_forward_mode_with_ndarrays(arch):
    x, y = array([0.3, 0.5], needs_grad=False), array([7.0, 7.0], needs_grad=False)
    middle = array([0.0, 0.0], needs_grad=False)
    m = oc.Matrix.ndarray(2, 2, oc.f64, 1, needs_dual=True)
    m.fill(2.0)

    @oc.kernel
    def first(x: VEC, middle: VEC):
        for i in x:
            middle[i] = oc.sin(x[i]) * x[0]

    @oc.kernel
    def second(middle: VEC, y: VEC, m: oc.types.ndarray(dtype=oc.types.matrix(2, 2, oc.f64), ndim=1)):
        for i in middle:
            y[i] = middle[i] ** 2 + m[0][0, 1]

    middle.dual.fill(9.0)
    m.dual.fill(0.0)
    for seed in ([1.0, 0.0], [0.5, -2.0]):
        with oc.ad.FwdMode(loss=y, param=x, seed=seed):
            first(x, middle)
            second(middle, y, m)
        values = x.to_numpy()
        change = np.cos(values) * seed * values[0] + np.sin(values) * seed[0]
        np.testing.assert_allclose(y.dual.to_numpy(), 2 * np.sin(values) * values[0] * change)
        assert not x.dual.to_numpy().any()
    plain = oc.ndarray(oc.f64, 2)
    with pytest.raises(RuntimeError, match="Duals of .*needs_dual=True"):
        oc.ad.FwdMode(plain, x, seed=[1.0, 0.0]).__enter__()
    mode = oc.ad.FwdMode(y, x, seed=[1.0, 0.0])
    with pytest.raises(oc.OctantsRuntimeError, match=r"\[OC1102\].*`middle`"), mode:
        first(x, plain)
    with pytest.raises(oc.OctantsRuntimeError, match="not supported for ndarray"):
        oc.ndarray(oc.i32, 2, needs_dual=True)


def test_products_of_second_derivatives(arch):
    x, w, loss = array([0.3, 0.5, 0.9]), array([1.1, -0.4, 0.2]), array(0.0)
    middle = array(np.zeros(3))
    steps = 4

    @oc.kernel
    def iterate(x: VEC, w: VEC, middle: VEC, steps: oc.i32):
        for i in x:
            v = x[i]
            for _ in range(steps):
                v = oc.sin(v) * w[i] + x[(i + 1) % 3] * v
            middle[i] = v

    @oc.kernel
    def measure(middle: VEC, loss: SCALAR):
        for i in middle:
            if middle[i] > -5.0:
                loss[None] += middle[i] ** 3 * middle[0]

    def both():
        iterate(x, w, middle, steps)
        measure(middle, loss)

    start_x, start_w = x.to_numpy(), w.to_numpy()
    along_x, along_w = np.array([0.7, -0.2, 0.4]), np.array([0.1, 0.3, -0.6])
    value, gradients, products = oc.ad.hessian_vector_product(both, loss, [x, w], [along_x, along_w])

    def gradients_at(step):
        x.from_numpy(start_x + step * along_x)
        w.from_numpy(start_w + step * along_w)
        return oc.ad.value_and_grad(both, loss, [x, w])()

    expected_value, expected = gradients_at(0.0)
    np.testing.assert_allclose(value, expected_value)
    np.testing.assert_allclose(gradients, expected)
    differences = (np.array(gradients_at(1e-6)[1]) - np.array(gradients_at(-1e-6)[1])) / 2e-6
    np.testing.assert_allclose(products, differences, rtol=1e-6, atol=1e-8)
    # Again, with what is left of the first time.
    x.from_numpy(start_x)
    w.from_numpy(start_w)
    _, _, again = oc.ad.hessian_vector_product(both, loss, [x, w], [along_x, along_w])
    np.testing.assert_allclose(again, products)


def test_second_derivatives_of_fields(arch):
    x = oc.field(oc.f64, 3, needs_grad=True, needs_dual=True)
    v = oc.Vector.field(2, oc.f64, 3, needs_grad=True, needs_dual=True)
    apart = oc.Vector.field(2, oc.f64, 3, needs_grad=True, needs_dual=True, layout=oc.Layout.SOA)
    loss = oc.field(oc.f64, (), needs_grad=True, needs_dual=True)

    @oc.kernel
    def f():
        for i in x:
            loss[None] += x[i] ** 2 * v[i][0] * v[i][1] * apart[i][1]

    x.from_numpy(np.array([1.0, 2.0, 3.0]))
    v.fill(2.0)
    apart.fill(3.0)
    ones, pairs = np.ones(3), np.ones((3, 2))
    _, gradient, product = oc.ad.hessian_vector_product(f, loss, x, ones)
    np.testing.assert_allclose(gradient, 24 * np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(product, 24 * ones)
    np.testing.assert_allclose(x.grad.dual.to_numpy(), product)
    _, _, (of_v, of_apart) = oc.ad.hessian_vector_product(f, loss, [v, apart], [pairs, pairs])
    squares = np.array([1.0, 4.0, 9.0])
    np.testing.assert_allclose(of_v, (squares * (3.0 + 2.0))[:, None] * pairs)
    np.testing.assert_allclose(of_apart, np.stack([0 * squares, squares * 4.0], axis=1))


def test_what_is_overwritten_is_refused():
    @oc.kernel
    def f(x: VEC, loss: SCALAR):
        for i in x:
            x[i] = x[i] * x[i]
        for i in x:
            loss[None] += x[i] * x[i]

    x, loss = array([0.3, 0.5]), array(0.0)
    with pytest.raises(oc.OctantsCompilationError, match=r"\[OC1101\](.|\n)*x\[i\] \* x\[i\]") as told:
        oc.ad.hessian_vector_product(lambda: f(x, loss), loss, x, [1.0, 1.0])
    assert "oc.ad.Tape" not in str(told.value)
    x.from_numpy(np.array([0.3, 0.5]))
    with oc.ad.Tape(loss):
        f(x, loss)
    np.testing.assert_allclose(x.grad.to_numpy(), 4 * np.array([0.3, 0.5]) ** 3)


def test_wrong_arguments():
    x, loss = array([0.3, 0.5]), array(0.0)
    plain = array([1.0], needs_dual=False)
    with pytest.raises(oc.OctantsRuntimeError, match="Duals of"):
        oc.ad.hessian_vector_product(lambda: None, loss, plain, [1.0])
    with pytest.raises(ValueError, match="2 inputs and 1 vectors"):
        oc.ad.hessian_vector_product(lambda: None, loss, [x, x], [np.ones(2)])
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        oc.ad.hessian_vector_product(lambda: None, loss, x, np.ones(3))
    with oc.ad.Tape(loss), pytest.raises(oc.OctantsRuntimeError, match="cannot stand inside a Tape"):
        oc.ad.FwdMode(x, x, seed=[1.0, 0.0]).__enter__()
