"""Duals of ndarrays, and forward mode over reverse mode: products of second derivatives with vectors."""

import numpy as np
import pytest
from gradient_values import INTS, SCALAR, VEC, integers

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


@oc.kernel
def squared_in_place(x: VEC, u: VEC, n: INTS):
    for i in x:
        u[i] = x[i]
    for i in x:
        u[i] = u[i] * u[i]


@oc.kernel
def steps_in_place(x: VEC, u: VEC, n: INTS):
    for i in x:
        u[i] = x[i]
        for _ in range(n[i]):
            u[i] = oc.sin(u[i]) * x[i] + x[(i + 1) % 3] * u[i]


@oc.kernel
def grown_in_place(x: VEC, u: VEC, n: INTS):
    for i in x:
        u[i] = x[i]
        while u[i] < 3.0:
            u[i] = u[i] * u[i] + 0.7
            n[i] += 1


@oc.kernel
def cubes(u: VEC, loss: SCALAR):
    for i in u:
        loss[None] += u[i] ** 3 * u[0]


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("kernel", [squared_in_place, steps_in_place, grown_in_place])
def test_what_is_overwritten_is_kept_with_its_duals(arch, kernel, limited):
    if limited:
        oc.init(arch=getattr(oc, arch), tape_memory_limit=1 << 16, log_level="error")
    start, along = np.array([0.3, 0.5, 0.7]), np.array([1.0, -0.4, 0.2])
    x, loss = array(start), array(0.0)

    def run():
        u = array(np.zeros(3))
        kernel(x, u, integers([2, 0, 3]))
        cubes(u, loss)

    def gradient_at(at):
        x.from_numpy(at)
        value, (gradient,) = oc.ad.value_and_grad(run, loss, x)()
        return value, gradient

    value, gradient, product = oc.ad.hessian_vector_product(run, loss, x, along)
    expected_value, expected = gradient_at(start)
    np.testing.assert_allclose(value, expected_value)
    np.testing.assert_allclose(gradient, expected)
    differences = (gradient_at(start + 1e-6 * along)[1] - gradient_at(start - 1e-6 * along)[1]) / 2e-6
    np.testing.assert_allclose(product, differences, rtol=1e-5, atol=1e-7)


def test_elements_of_fields_that_are_overwritten_are_kept_with_their_duals(arch):
    x = oc.field(oc.f64, 3, needs_grad=True, needs_dual=True)
    pairs = oc.Vector.field(2, oc.f64, 3, needs_grad=True, needs_dual=True, layout=oc.Layout.SOA)
    loss = oc.field(oc.f64, (), needs_grad=True, needs_dual=True)

    @oc.kernel
    def f():
        for i in x:
            pairs[i] = oc.Vector([x[i], 1.0], oc.f64)
            for _ in range(2):
                pairs[i] = oc.Vector([pairs[i][0] * pairs[i][1], pairs[i][0] * 2.0], oc.f64)
            loss[None] += pairs[i][0]

    # x, 1 → x, 2x → 2x², 2x
    x.from_numpy(np.array([1.0, 2.0, 3.0]))
    value, gradient, product = oc.ad.hessian_vector_product(f, loss, x, [1.0, 10.0, 100.0])
    assert value == 28.0
    np.testing.assert_allclose(gradient, [4.0, 8.0, 12.0])
    np.testing.assert_allclose(product, [4.0, 40.0, 400.0])


def test_what_cannot_be_kept_is_refused():
    @oc.kernel
    def gathered_in_place(x: VEC, n: INTS):
        for i in x:
            x[i] = x[n[i]] * x[n[i]]

    x, loss = array([0.3, 0.5, 0.7]), array(0.0)
    with pytest.raises(oc.OctantsCompilationError, match=r"\[OC1101\]") as told:
        oc.ad.hessian_vector_product(lambda: gathered_in_place(x, integers([1, 2, 0])), loss, x, np.ones(3))
    assert "oc.ad.Tape" not in str(told.value)
    np.testing.assert_array_equal(x.to_numpy(), [0.3, 0.5, 0.7])


def test_functions_that_no_grad_decorates_are_refused():
    x, s, loss = array([3.0]), array([0.0]), array([0.0])

    @oc.kernel
    def square(x: VEC, s: VEC):
        s[0] = x[0] ** 2

    @oc.kernel
    def product(x: VEC, s: VEC, loss: VEC):
        loss[0] += x[0] ** 2 * s[0]

    @oc.ad.no_grad
    def scale():
        square(x, s)

    def function():
        scale()
        product(x, s, loss)

    with pytest.raises(RuntimeError, match="`scale` has no second derivatives, since no_grad decorates it"):
        oc.ad.hessian_vector_product(function, loss, x, np.array([1.0]))


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


@pytest.mark.parametrize("kind", ["ndarray", "field"])
def test_functions_with_gradients_of_their_own(arch, kind):
    make = {"ndarray": oc.ndarray, "field": oc.field}[kind]
    x, y, loss = (make(oc.f64, shape, needs_grad=True, needs_dual=True) for shape in (2, 2, ()))
    at = np.array([0.3, 0.9])
    x.from_numpy(at)
    annotation, total = {"ndarray": (VEC, SCALAR), "field": (oc.template(), oc.template())}[kind]

    @oc.kernel
    def sine(x: annotation, y: annotation):
        for i in x:
            y[i] = oc.sin(x[i])

    @oc.kernel
    def sine_back(x: annotation, y: annotation):
        for i in x:
            x.grad[i] += oc.cos(x[i]) * y.grad[i]

    @oc.kernel
    def add_up(y: annotation, loss: total):
        for i in y:
            loss[None] += y[i] ** 2

    @oc.ad.grad_replaced
    def replaced(x, y):
        sine(x, y)

    @oc.ad.grad_for(replaced)
    def back(x, y):
        sine_back(x, y)
        y.grad.fill(0)

    @oc.ad.grad_replaced
    def by_grad(x, y):
        sine(x, y)

    @oc.ad.grad_for(by_grad)
    def back_by_grad(x, y):
        sine.grad(x, y)

    @oc.ad.grad_replaced
    def on_host(x, y):
        sine(x, y)

    @oc.ad.grad_for(on_host)
    def back_on_host(x, y):
        x.grad.from_numpy(x.grad.to_numpy() + np.cos(x.to_numpy()) * y.grad.to_numpy())

    def run(function):
        function(x, y)
        add_up(y, loss)

    direction = np.array([2.0, -1.0])
    for function in (replaced, by_grad) * 2:
        _, gradient, product = oc.ad.hessian_vector_product(lambda: run(function), loss, x, direction)
        np.testing.assert_allclose(gradient, np.sin(2 * at))
        np.testing.assert_allclose(product, 2 * np.cos(2 * at) * direction)
    with pytest.raises(oc.OctantsRuntimeError, match=r"OC1105.*no second derivatives"):
        oc.ad.hessian_vector_product(lambda: run(on_host), loss, x, direction)


@pytest.mark.parametrize("kind", ["ndarray", "field"])
def test_gradients_by_hand_in_forward_mode_have_duals(arch, kind):
    make = {"ndarray": oc.ndarray, "field": oc.field}[kind]
    x, y, squares, loss = (make(oc.f64, shape, needs_grad=True, needs_dual=True) for shape in (3, 3, 3, ()))
    annotation, total = {"ndarray": (VEC, SCALAR), "field": (oc.template(), oc.template())}[kind]

    @oc.kernel
    def cubes(x: annotation, y: annotation):
        for i in x:
            y[i] = x[i] ** 3 * x[0]

    @oc.kernel
    def sum_up(x: annotation, loss: total):
        for i in x:
            loss[None] += x[i] ** 3 * x[0]

    @oc.kernel
    def square_gradients(x: annotation, squares: annotation):
        for i in x:
            squares[i] = x.grad[i] ** 2 * x[i]

    def gradient_at(at):
        gradient = 3 * at**2 * at[0]
        gradient[0] += (at**3).sum()
        return gradient

    def by_hand():
        cubes(x, y)
        x.grad.fill(0)
        y.grad.fill(1)
        cubes.grad(x, y)

    def by_tape():
        with oc.ad.Tape(loss):
            sum_up(x, loss)

    at, along, step = np.array([0.3, 0.9, -0.5]), np.array([2.0, -1.0, 0.5]), 1e-6
    x.from_numpy(at)
    ahead, behind = (gradient_at(at + sign * step * along) for sign in (1, -1))
    squared = (ahead**2 * (at + step * along) - behind**2 * (at - step * along)) / (2 * step)
    for compute in (by_hand, by_tape, by_hand):
        with oc.ad.FwdMode(loss=squares, param=x, seed=list(along)):
            compute()
            square_gradients(x, squares)
        np.testing.assert_allclose(x.grad.to_numpy(), gradient_at(at))
        np.testing.assert_allclose(x.grad.dual.to_numpy(), (ahead - behind) / (2 * step), rtol=1e-7)
        np.testing.assert_allclose(squares.dual.to_numpy(), squared, rtol=1e-7)
    # Duals of gradients are those of one FwdMode.
    with oc.ad.FwdMode(loss=squares, param=x, seed=list(along)):
        square_gradients(x, squares)
    np.testing.assert_allclose(squares.dual.to_numpy(), gradient_at(at) ** 2 * along)


def test_what_a_gradient_by_hand_needs_is_as_it_was_at_the_call(arch):
    x, y, loss = array([0.3, 0.9]), array(np.zeros(2)), array(0.0)

    @oc.kernel
    def sine(x: VEC, y: VEC):
        for i in x:
            y[i] = oc.sin(x[i])

    @oc.kernel
    def overwrite(x: VEC):
        for i in x:
            x[i] = 7.0

    @oc.kernel
    def sum_up(y: VEC, loss: SCALAR):
        for i in y:
            loss[None] += y[i]

    @oc.ad.grad_replaced
    def replaced(x, y):
        sine(x, y)

    @oc.ad.grad_for(replaced)
    def back(x, y):
        sine.grad(x, y)

    for late in (False, True):
        x.from_numpy(np.array([0.3, 0.9]))
        tape = oc.ad.Tape(loss)
        tape.__enter__()
        replaced(x, y)
        sum_up(y, loss)
        if late:
            overwrite(x)
            with pytest.raises(oc.OctantsRuntimeError, match=r"OC1105.*`replaced`.*of `x`.*`overwrite`"):
                tape.__exit__(None, None, None)
        else:
            tape.__exit__(None, None, None)
            np.testing.assert_allclose(x.grad.to_numpy(), np.cos([0.3, 0.9]))


NODES = {
    "dense": lambda: oc.root.dense(oc.i, 6),
    "pointer": lambda: oc.root.pointer(oc.i, 3).dense(oc.i, 2),
    "bitmasked": lambda: oc.root.bitmasked(oc.i, 6),
}


@pytest.mark.parametrize("entries", [1, 2])
def test_second_derivatives_of_sparse_fields(arch, entries):
    """Duals of gradients come and go with the cells of their elements; dense fields say what they are."""
    found = {}
    for kind, node in NODES.items():
        oc.init(arch=getattr(oc, arch), log_level="error")
        make = oc.field if entries == 1 else lambda dtype, **options: oc.Vector.field(entries, dtype, **options)
        x, y = (make(oc.f64, needs_grad=True, needs_dual=True) for _ in range(2))
        loss = oc.field(oc.f64, (), needs_grad=True, needs_dual=True)
        node().place(x, y)
        oc.root.lazy_grad()
        oc.root.lazy_dual()

        @oc.kernel
        def f(n: oc.i32):
            for i in range(6):
                if i < 3 or i == 5:
                    v = x[i]
                    for _ in range(n):
                        v = oc.sin(v) * x[0] + v * v * 0.3
                    y[i] = v
            for i in range(6):
                v = y[i] * y[i] * y[(i + 1) % 6]
                loss[None] += v if oc.static(entries == 1) else v.sum()

        values = np.array([0.3, 0.5, 0.7, 0.0, 0.0, -0.4])
        along = np.array([1.0, -0.4, 0.2, 0.0, 0.0, 0.6])
        if entries > 1:
            values, along = np.stack([values, 0.5 * values], axis=-1), np.stack([along, -along], axis=-1)
        for i in (0, 1, 2, 5):
            x[i] = values[i]
        for _ in range(2):
            found[kind] = oc.ad.hessian_vector_product(lambda: f(3), loss, x, along)
    for kind in ("pointer", "bitmasked"):
        for one, expected in zip(found[kind], found["dense"], strict=True):
            np.testing.assert_allclose(one, expected, rtol=1e-12, atol=1e-14)
    assert np.abs(found["dense"][2]).max() > 1e-3


@pytest.mark.parametrize("kind", ["ndarray", "field"])
def test_a_tape_refuses_to_go_back_through_gradients_by_hand(arch, kind):
    make = {"ndarray": oc.ndarray, "field": oc.field}[kind]
    x, y, loss = (make(oc.f64, shape, needs_grad=True, needs_dual=True) for shape in (3, 3, ()))
    annotation, total = {"ndarray": (VEC, SCALAR), "field": (oc.template(), oc.template())}[kind]

    @oc.kernel
    def cubes(x: annotation, y: annotation):
        for i in x:
            y[i] = x[i] ** 3

    @oc.kernel
    def penalise(x: annotation, loss: total):
        for i in x:
            loss[None] += x.grad[i] ** 2

    @oc.kernel
    def sum_up(y: annotation, loss: total):
        for i in y:
            loss[None] += y[i]

    def by_hand():
        cubes(x, y)
        y.grad.fill(1)
        cubes.grad(x, y)

    at = np.array([0.3, 0.9, -0.5])
    x.from_numpy(at)
    with pytest.raises(oc.OctantsRuntimeError, match=r"OC1104.*`penalise` reads `x.grad`.*`cubes.grad`, called at"):
        with oc.ad.Tape(loss):
            by_hand()
            penalise(x, loss)
    # Whoever does not read them goes back.
    with oc.ad.Tape(loss, clear_gradients=False):
        by_hand()
        x.grad.fill(0)
        y.grad.fill(0)
        sum_up(y, loss)
    np.testing.assert_allclose(x.grad.to_numpy(), 3 * at**2)
    with pytest.raises(oc.OctantsRuntimeError, match=r"OC1104.*`cubes.grad` is called in a Tape inside of a FwdMode"):
        oc.ad.hessian_vector_product(lambda: (by_hand(), sum_up(y, loss)), loss, x, np.ones(3))
