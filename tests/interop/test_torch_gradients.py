"""Gradients of torch's tensors: in tapes, and through functions that torch differentiates."""

import numpy as np
import pytest

import octants as oc

torch = pytest.importorskip("torch", reason="torch is not installed")

A = oc.types.ndarray(dtype=oc.f64, ndim=1)


@pytest.fixture
def on(arch):
    """The device that tensors of the session lie on."""
    return "cuda" if arch == "cuda" else "cpu"


def tensor(values, on, requires_grad=True):
    return torch.tensor(values, dtype=torch.float64, device=on, requires_grad=requires_grad)


@oc.kernel
def weighted(x: A, w: A, y: A):
    for i in x:
        y[i] = oc.sin(x[i]) * w[i] + w[0]


@oc.kernel
def total(y: A, loss: oc.types.ndarray(dtype=oc.f64)):
    for i in y:
        for index in oc.grouped(loss):
            loss[index] += y[i] * y[i]


def reference(x, w):
    return torch.sin(x) * w + w[0]


@pytest.mark.parametrize("shape", [(), (1,)])
def test_tensors_in_a_tape(on, shape):
    x, w, y = tensor([0.3, 0.5, 0.9], on), tensor([1.0, 2.0, 3.0], on), tensor([0.0] * 3, on)
    constant = tensor([1.0, 2.0, 3.0], on, requires_grad=False)
    loss = torch.zeros(shape, dtype=torch.float64, device=on, requires_grad=True)
    for weights in (w, constant, w):
        with oc.ad.Tape(loss):
            weighted(x, weights, y)
            total(y, loss)
        other_x, other_w = x.detach().clone().requires_grad_(), weights.detach().clone().requires_grad_()
        expected = (reference(other_x, other_w) ** 2).sum()
        expected.backward()
        torch.testing.assert_close(loss.detach().reshape(()), expected.detach())
        torch.testing.assert_close(x.grad, other_x.grad)
        if weights is w:
            torch.testing.assert_close(w.grad, other_w.grad)
    assert constant.grad is None


def test_tensors_that_do_not_lie_side_by_side(on):
    whole = torch.arange(12, dtype=torch.float64, device=on).reshape(3, 4) / 7

    @oc.kernel
    def f(x: oc.types.ndarray(dtype=oc.f64, ndim=2), loss: A):
        for i, j in x:
            loss[0] += x[i, j] ** 2 * (i + 2 * j)

    for view in (whole.T, whole[:, ::2], whole[1:, 1:3], whole.T[::2]):
        x, loss = view.detach().requires_grad_(), tensor([0.0], on)
        with oc.ad.Tape(loss):
            f(x, loss)
        i, j = np.indices(x.shape)
        np.testing.assert_allclose(x.grad.cpu().numpy(), 2 * view.cpu().numpy() * (i + 2 * j))
    shared = torch.ones(1, dtype=torch.float64, device=on).expand(3, 2).detach().requires_grad_()
    with pytest.raises(oc.OctantsRuntimeError, match="share memory"), oc.ad.Tape(loss):
        f(shared, loss)
    other = torch.ones(2, 3, dtype=torch.float64, device=on).requires_grad_()
    other.grad = torch.zeros(3, 2, dtype=torch.float64, device=on).T
    with pytest.raises(ValueError, match="strides"), oc.ad.Tape(loss):
        f(other, loss)


def test_a_kernel_as_a_function_of_torch(on):
    layer = oc.ad.torch_function(weighted, lambda x, w: torch.empty_like(x))
    x, w = tensor([0.3, 0.5, 0.9], on), tensor([1.0, 2.0, 3.0], on)
    y = layer(x * 2.0, layer(w, w))
    (y**2).sum().backward()
    found = x.grad.clone(), w.grad.clone()
    x.grad = w.grad = None
    (reference(x * 2.0, reference(w, w)) ** 2).sum().backward()
    torch.testing.assert_close(found[0], x.grad)
    torch.testing.assert_close(found[1], w.grad)
    assert torch.autograd.gradcheck(layer, (x, w))
    assert layer(x.detach(), w.detach()).requires_grad is False


def test_a_function_of_several_kernels_and_outputs(on):
    middle = oc.field(oc.f64, 3, needs_grad=True)

    @oc.kernel
    def first(x: A, scale: oc.f64):
        for i in x:
            middle[i] = x[i] * x[i] * scale

    @oc.kernel
    def second(y: A, z: A, w: A):
        for i in y:
            y[i] = middle[i] * w[i]
            z[i] = oc.exp(middle[(i + 1) % 3])

    def both(x, w, scale, y, z):
        first(x, scale)
        second(y, z, w)

    layer = oc.ad.torch_function(both, lambda x, w, scale: (torch.zeros_like(x), torch.zeros_like(x)))
    x, w = tensor([0.3, 0.5, 0.9], on), tensor([1.0, 2.0, 3.0], on)
    # Twice, before either goes back: the second call overwrites the field.
    y, z = layer(x, w, 2.0)
    other, _ = layer(w, x, 0.5)
    (y * z + other).sum().backward()
    found = x.grad.clone(), w.grad.clone()
    x.grad = w.grad = None
    squared = 2.0 * x * x
    (squared * w * torch.exp(squared.roll(-1)) + 0.5 * w * w * x).sum().backward()
    torch.testing.assert_close(found[0], x.grad)
    torch.testing.assert_close(found[1], w.grad)


def test_training_a_network_through_a_simulation(on):
    """A network chooses a push; the kernel moves a mass by it; the mass is to come to rest at a target."""
    torch.manual_seed(0)
    steps = 8

    @oc.kernel
    def roll(pushes: oc.types.ndarray(dtype=oc.f64, ndim=2), start: A, x: A):
        for i in start:
            position = start[i]
            velocity = oc.cast(0.0, oc.f64)
            for k in range(pushes.shape[1]):
                velocity = velocity * 0.9 + pushes[i, k] * 0.25
                position += velocity * 0.25 - 0.01 * oc.sin(position)
            x[i] = position

    simulate = oc.ad.torch_function(roll, lambda pushes, start: torch.zeros_like(start))
    network = torch.nn.Sequential(torch.nn.Linear(1, 16), torch.nn.Tanh(), torch.nn.Linear(16, steps))
    network = network.double().to(on)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.03)
    losses = []
    for _ in range(150):
        start = torch.rand(32, dtype=torch.float64, device=on) * 2 - 1
        loss = (simulate(network(start[:, None]), start) ** 2).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert np.mean(losses[-10:]) < 0.02 * np.mean(losses[:5])


def test_what_torch_writes_inside_of_a_tape_is_seen(on, arch):
    if arch == "remote":
        pytest.skip("a launch takes a copy of a tensor")
    x, w, y, loss = (tensor(values, on) for values in ([0.3, 0.5], [1.0, 2.0], [0.0, 0.0], [0.0]))
    text = r"\[OC1105\].*`weighted`, called at .*py:\d+, need what it saw of `x`, and an in-place operation of torch before .*py:\d+ has written"
    with pytest.raises(oc.OctantsRuntimeError, match=text), oc.ad.Tape(loss):
        weighted(x, w, y)
        total(y, loss)
        with torch.no_grad():
            x.mul_(2.0)
    # Before the kernel sees it, anyone may write.
    with oc.ad.Tape(loss):
        with torch.no_grad():
            x.mul_(0.5)
        weighted(x, w, y)
        total(y, loss)
    by_torch = tensor(x.tolist(), on)
    (reference(by_torch, w.detach()) ** 2).sum().backward()
    torch.testing.assert_close(x.grad, by_torch.grad)


class Weighted(torch.autograd.Function):
    """As programs write it by hand, with tensors' own gradients, also of those that torch has computed."""

    allocate = False

    @staticmethod
    def forward(ctx, x, w):
        y = torch.zeros_like(x)
        weighted(x, w, y)
        ctx.save_for_backward(x, w, y)
        return y

    @staticmethod
    def backward(ctx, gradients):
        x, w, y = ctx.saved_tensors
        if Weighted.allocate:
            x.grad, w.grad = torch.zeros_like(x), torch.zeros_like(w)
        y.grad = gradients.contiguous()
        weighted.grad(x, w, y)
        return x.grad, w.grad


@pytest.mark.parametrize("allocate", [False, True])
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
def test_functions_of_torch_that_are_written_by_hand(on, allocate, monkeypatch):
    monkeypatch.setattr(Weighted, "allocate", allocate)
    x, w = tensor([0.3, 0.5], on), tensor([1.0, 2.0], on)
    (Weighted.apply(x * 2.0, w.exp()) ** 2).sum().backward()
    by_torch, w_by_torch = tensor([0.3, 0.5], on), tensor([1.0, 2.0], on)
    (reference(by_torch * 2.0, w_by_torch.exp()) ** 2).sum().backward()
    torch.testing.assert_close(x.grad, by_torch.grad)
    torch.testing.assert_close(w.grad, w_by_torch.grad)


def test_wrong_uses(on):
    x, w, y = tensor([0.3, 0.5], on), tensor([1.0, 2.0], on), tensor([0.0, 0.0], on)
    loss = tensor([0.0], on)
    with pytest.raises(oc.OctantsRuntimeError, match="torch has computed.*torch_function"), oc.ad.Tape(loss):
        weighted(x * 2.0, w, y)
    for bad, text in (
        (tensor([0.0, 0.0], on), "only one element"),
        (tensor([0.0], on, requires_grad=False), "Gradients of loss are not allocated, please set"),
        (tensor([0.0], on) * 2.0, "Gradients of loss are not allocated, please set"),
    ):
        with pytest.raises(RuntimeError, match=text):
            oc.ad.Tape(bad).__enter__()
    layer = oc.ad.torch_function(weighted, lambda x, w: torch.empty_like(x))
    with oc.ad.Tape(loss), pytest.raises(oc.OctantsRuntimeError, match="not recorded by a Tape"):
        layer(x, w)
    with pytest.raises(TypeError, match="tensor or a tuple"):
        oc.ad.torch_function(weighted, lambda x, w: 3)(x, w)
    with pytest.raises(TypeError, match="torch_function takes"):
        oc.ad.torch_function(weighted, 3)
    # What goes back needs the input, which torch has changed.
    moved = w * 1.0
    out = layer(moved, w)
    with torch.no_grad():
        moved.mul_(2.0)
    with pytest.raises(RuntimeError, match="inplace|in-place"):
        out.sum().backward()


class Cleared(torch.autograd.Function):
    """As programs for Quadrants have it: the launch gave the tensors gradients, which are cleared and read."""

    @staticmethod
    def forward(ctx, x, w):
        y = torch.zeros_like(x)
        weighted(x, w, y)
        ctx.save_for_backward(x, w, y)
        return y

    @staticmethod
    def backward(ctx, gradients):
        x, w, y = ctx.saved_tensors
        x.grad.fill_(0)
        w.grad.fill_(0)
        y.grad = gradients.contiguous()
        weighted.grad(x, w, y)
        return x.grad.clone(), w.grad.clone()


@pytest.mark.filterwarnings("error")
def test_a_launch_gives_tensors_gradients_of_zeros(on):
    x, w, y = tensor([0.3, 0.5], on), tensor([1.0, 2.0], on, requires_grad=False), tensor([0.0, 0.0], on)
    kept = y.grad = torch.full_like(y, 7.0)
    computed, detached = x * 2.0, (x * 2.0).detach()
    for _ in range(3):
        weighted(x, w, y)
        weighted(computed, w, y)
        weighted(detached, w, y)
    assert x.grad.tolist() == computed.grad.tolist() == [0, 0] and w.grad is None and detached.grad is None
    assert y.grad is kept and kept.tolist() == [7, 7]
    one = x.grad
    weighted(x, w, y)
    assert x.grad is one, "they are made once"
    strided = torch.zeros(2, 3, dtype=torch.float64, device=on).T.requires_grad_()

    @oc.kernel
    def read(x: oc.types.ndarray(), out: A):
        for i, j in x:
            out[0] += x[i, j]

    @oc.kernel
    def count(k: oc.types.ndarray(dtype=oc.i32, ndim=1), out: A):
        for i in k:
            out[0] += k[i]

    read(strided, y)
    assert strided.grad.stride() == strided.stride()
    shared = torch.ones(1, 1, dtype=torch.float64, device=on).expand(3, 2).detach().requires_grad_()
    read(shared, y)
    assert shared.grad is None, "elements that share memory have none of their own"
    count(torch.ones(3, dtype=torch.int32, device=on), y)
    # What torch has computed still goes back through torch.
    with pytest.raises(oc.OctantsRuntimeError, match="torch has computed"):
        weighted.grad(computed, w, y)
    computed.grad = torch.zeros_like(computed)
    weighted.grad(computed, w, y)
    assert computed.grad.abs().min() > 0


@pytest.mark.filterwarnings("error")
def test_gradients_that_a_launch_gave_are_cleared_and_read_on_the_way_back(on):
    x, w = tensor([0.3, 0.5], on), tensor([1.0, 2.0], on)
    for _ in range(2):
        # Of tensors that torch has computed: to the gradients of others it adds by itself.
        (Cleared.apply(x * 1.0, w * 1.0) ** 2).sum().backward()
    by_torch, w_by_torch = tensor([0.3, 0.5], on), tensor([1.0, 2.0], on)
    (2 * (reference(by_torch, w_by_torch) ** 2).sum()).backward()
    torch.testing.assert_close(x.grad, by_torch.grad)
    torch.testing.assert_close(w.grad, w_by_torch.grad)


@oc.kernel
def add_sine(x: A, y: A):
    for i in x:
        y[i] += oc.sin(x[i])


@oc.kernel
def set_sine(x: A, y: A):
    for i in x:
        y[i] = oc.sin(x[i])


def twice(x, y):
    add_sine(x, y)
    add_sine(x, y)


@pytest.mark.parametrize(
    ("function", "outputs", "by_torch"),
    [
        (add_sine, lambda x: x.clone(), lambda x: x + x.sin()),
        (add_sine, lambda x: x * x, lambda x: x * x + x.sin()),
        (set_sine, lambda x: x.clone(), lambda x: x.sin()),
        (twice, lambda x: x.clone(), lambda x: x + 2 * x.sin()),
        (lambda x, y: total(x, y), lambda x: x[:1] * 3.0, lambda x: 3.0 * x[:1] + (x * x).sum()),
    ],
)
def test_what_outputs_hold_has_gradients(on, function, outputs, by_torch):
    layer = oc.ad.torch_function(function, outputs)
    x, same = tensor([0.3, 0.5, 0.9], on), tensor([0.3, 0.5, 0.9], on)
    (layer(x) ** 2).sum().backward()
    (by_torch(same) ** 2).sum().backward()
    torch.testing.assert_close(x.grad, same.grad)


@pytest.mark.parametrize("function", [set_sine, lambda x, y: set_sine(x, y)])
def test_second_derivatives_of_functions_of_torch_are_refused(on, function):
    layer = oc.ad.torch_function(function, torch.zeros_like)
    x = tensor([0.3, 0.5], on)
    # Gradients alone may be asked for in this way.
    (found,) = torch.autograd.grad(layer(x).sum(), x, create_graph=True)
    torch.testing.assert_close(found.detach(), x.detach().cos())
    for power in (1, 2):
        (found,) = torch.autograd.grad((layer(x) ** power).sum(), x, create_graph=True)
        with pytest.raises(oc.OctantsRuntimeError, match=r"OC1104.*no second derivatives"):
            ((found**2).sum() + (x**2).sum()).backward()


def test_what_torch_makes_of_functions_is_refused(on):
    layer = oc.ad.torch_function(set_sine, torch.zeros_like)
    x = tensor([0.3, 0.5, 0.9], on)
    transform = r"OC1104.*torch.func's transforms"
    with pytest.raises(oc.OctantsRuntimeError, match=transform):
        torch.autograd.grad(layer(x), x, torch.eye(3, dtype=torch.float64, device=on), is_grads_batched=True)
    func = getattr(torch, "func", None) or pytest.importorskip("functorch")
    rows = torch.ones(2, 3, dtype=torch.float64, device=on)
    with pytest.raises(oc.OctantsRuntimeError, match=transform):
        func.vmap(layer)(rows)
    with pytest.raises(oc.OctantsRuntimeError, match=transform):
        func.grad(lambda x: layer(x).sum())(rows[0])
    forward = torch.autograd.forward_ad
    with forward.dual_level(), pytest.raises(oc.OctantsRuntimeError, match=r"OC1104.*forward mode"):
        layer(forward.make_dual(x.detach(), torch.ones_like(x)))


def test_what_functions_of_torch_must_not_do(on):
    x, w = tensor([0.3, 0.5, 0.9], on), tensor([1.0, 2.0, 3.0], on)
    for outputs in (lambda x: x, lambda x: x[:], lambda x: x.detach()):
        with pytest.raises(oc.OctantsRuntimeError, match=r"OC1104.*shares memory"):
            oc.ad.torch_function(add_sine, outputs)(x)

    def square(x, y):
        set_sine(x, y)
        twice(y, x)

    with pytest.raises(oc.OctantsRuntimeError, match=r"OC1104.*has written one of its arguments"):
        oc.ad.torch_function(square, torch.zeros_like)(x * 1.0)
    with pytest.raises(oc.OctantsRuntimeError, match=r"OC1104.*list with tensors"):
        oc.ad.torch_function(lambda xs, y: set_sine(xs[0], y), lambda xs: torch.zeros_like(xs[0]))([x])
    for hidden in (w, w * 1.0):
        layer = oc.ad.torch_function(lambda x, y, hidden=hidden: weighted(x, hidden, y), torch.zeros_like)
        result = layer(x).sum()
        with pytest.raises(oc.OctantsRuntimeError, match=r"OC1104.*no argument of the function"):
            result.backward()
    # One memory for the outputs of two calls: what goes back would find the other's.
    kept = torch.zeros(3, dtype=torch.float64, device=on)
    layer = oc.ad.torch_function(set_sine, lambda x: kept)
    first, _ = layer(x), layer(w)
    with pytest.raises(RuntimeError, match="inplace|in-place"):
        first.sum().backward()


def test_what_changes_behind_a_function_of_torch_is_refused(on):
    field, array = oc.field(oc.f64, 3), oc.ndarray(oc.f64, 3)

    @oc.kernel
    def by_field(x: A, y: A):
        for i in x:
            y[i] = x[i] * field[i]

    @oc.kernel
    def by_array(x: A, w: A, y: A):
        for i in x:
            y[i] = x[i] * w[i]

    @oc.kernel
    def by_random(x: A, y: A):
        for i in x:
            y[i] = x[i] * oc.random(oc.f64)

    def layers():
        zeros = lambda x, *_: torch.zeros_like(x)
        yield oc.ad.torch_function(by_field, zeros), ()
        yield oc.ad.torch_function(lambda x, y: by_field(x, y), zeros), ()
        yield oc.ad.torch_function(by_array, zeros), (array,)
        yield oc.ad.torch_function(by_array, zeros), (numbers,)

    numbers = np.full(3, 2.0)
    for layer, others in layers():
        for is_changed in (False, True):
            field.fill(2.0), array.fill(2.0), numbers.fill(2.0)
            x = tensor([0.3, 0.5, 0.9], on)
            result = layer(x, *others).sum()
            if is_changed:
                field.fill(5.0), array.fill(5.0), numbers.fill(5.0)
                with pytest.raises(oc.OctantsRuntimeError, match=r"OC1105.*other results"):
                    result.backward()
            else:
                result.backward()
                assert x.grad.tolist() == [2.0, 2.0, 2.0]
    result = oc.ad.torch_function(lambda x, y: by_random(x, y), torch.zeros_like)(tensor([0.3, 0.5], on)).sum()
    with pytest.raises(oc.OctantsRuntimeError, match=r"OC1105.*other results"):
        result.backward()


PARTS = [
    lambda x: x,
    lambda x: x.T,
    lambda x: x[1:],
    lambda x: x[:, 1:],
    lambda x: x.T[1:],
    lambda x: x.T[:, 1:],
    lambda x: x.T[:2, 1:],
    lambda x: x[::2],
    lambda x: x.T[::2],
    lambda x: x[1:2, 3:4],
]


@pytest.mark.parametrize("read", range(len(PARTS)))
def test_writes_through_views_with_any_strides_are_seen(on, read):
    @oc.kernel
    def squares(x: oc.types.ndarray(), loss: A):
        for i, j in x:
            loss[0] += x[i, j] * x[i, j]

    @oc.kernel
    def overwrite(x: oc.types.ndarray()):
        for i, j in x:
            x[i, j] = 7.0

    for part in PARTS:
        memory = torch.arange(12, dtype=torch.float64, device=on).reshape(3, 4)
        numbers = torch.arange(12).reshape(3, 4)
        taken, written = PARTS[read](memory), part(memory)
        meet = set(PARTS[read](numbers).flatten().tolist()) & set(part(numbers).flatten().tolist())
        x, loss = taken.detach().requires_grad_(), tensor([0.0], on)
        before = x.detach().clone()
        if meet:
            with pytest.raises(oc.OctantsRuntimeError, match=r"OC1105.*`overwrite`"), oc.ad.Tape(loss):
                squares(x, loss)
                overwrite(written)
            continue
        with oc.ad.Tape(loss):
            squares(x, loss)
            overwrite(written)
        torch.testing.assert_close(x.grad, 2 * before)


@oc.kernel
def sine(x: A, y: A):
    for i in x:
        y[i] = oc.sin(x[i])


@oc.kernel
def squares_into(x: A, y: A):
    for i in x:
        y[0] += x[i] * x[i]


VIEWS = {
    "flat": lambda x, y: sine(x.reshape(-1), y.view(-1)),
    "computed": lambda x, y: sine(x * 2, y),
    "output": lambda x, y: sine(x, y[:]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_and_results_of_torch_inside_of_a_function_are_refused(on, name):
    x = tensor([0.3, 0.5], on)
    y = oc.ad.torch_function(VIEWS[name], torch.zeros_like)(x)
    with pytest.raises(RuntimeError, match="OC1104"):
        y.sum().backward()


def test_sums_in_another_order_are_no_other_results(on):
    values = np.linspace(0.1, 1.0, 200_000)
    for _ in range(20):
        x = tensor(values, on)
        y = oc.ad.torch_function(lambda x, y: squares_into(x, y), lambda x: torch.zeros_like(x[:1]))(x)
        y.sum().backward()
        np.testing.assert_allclose(x.grad.cpu().numpy(), 2 * values)
