"""Kernels as users write them, whole: gradients of a tape against differences. Each mixes what other files test apart."""

import dataclasses

import numpy as np
import pytest
from gradient_values import INTS, SCALAR, VEC, differences, integers, made

import octants as oc

M2, V2, V3 = oc.types.matrix(2, 2, oc.f64), oc.types.vector(2, oc.f64), oc.types.vector(3, oc.f64)


@pytest.fixture
def reals(arch):
    """A session whose literals have the precision of differences."""
    oc.init(arch=getattr(oc, arch), default_fp=oc.f64, log_level="error")


def check(run, at):
    """``run(x, loss)`` calls kernels that add to the loss."""
    at = np.asarray(at, dtype=np.float64)

    def value(x):
        loss = made(0.0)
        run(made(x), loss)
        return loss[None]

    x, loss = made(at), made(0.0)
    with oc.ad.Tape(loss):
        run(x, loss)
    np.testing.assert_allclose(x.grad.to_numpy(), differences(value, at), rtol=1e-6, atol=1e-6)


X = [0.37, 1.12, 0.81, 0.55, 0.94, 0.23]


@oc.kernel
def nested_whiles(x: VEC, loss: SCALAR):
    for i in x:
        v, s, outer = x[i], 0.0, 0
        while outer < 6:
            inner = 0
            while True:
                v = oc.sin(v) + 0.3 * x[(i + 1) % x.shape[0]]
                inner += 1
                if v > 1.0 or inner > 3:
                    break
                if inner == 2:
                    continue
                s += v * v
            outer += 1
            if s > 4.0:
                break
        loss[None] += s * v


@oc.kernel
def powers_of_a_matrix(x: VEC, loss: SCALAR):
    for i in range(2):
        m = M2([[x[0], x[1]], [x[2], x[3 + i]]])
        r = oc.Matrix.identity(oc.f64, 2)
        for k in range(3 + 2 * i):
            r = r @ m * 0.5 + m.transpose() * 0.1
            if r.trace() > 1.5:
                r = r.inverse()
            m[k % 2, 1] += 0.1 * r[0, k % 2]
        loss[None] += r.determinant() + r.norm()


@oc.kernel
def sorted_in_a_variable(x: VEC, loss: SCALAR):
    for _ in range(1):
        a = oc.Vector([0.0] * 6)
        for i in range(6):
            a[i] = x[i]
        for i in range(1, 6):
            key, j = a[i], i - 1
            while j >= 0 and a[j] > key:
                a[j + 1] = a[j]
                j -= 1
            a[j + 1] = key
        for i in range(6):
            loss[None] += a[i] * a[i] * (i + 1)


@oc.kernel
def pairs_of_a_triangle(x: VEC, loss: SCALAR):
    for i in range(x.shape[0]):
        for j in range(i + 1, x.shape[0]):
            d = x[i] - x[j]
            if oc.abs(d) < 0.5:
                loss[None] += oc.exp(-d * d) / (1.0 + oc.abs(d))


@oc.kernel
def powers_by_their_place(x: VEC, loss: SCALAR):
    for at in oc.grouped(oc.ndrange(4, (1, 5))):
        if at[0] < at[1]:
            loss[None] += x[at[0]] ** at[1] * x[at[1]]


@oc.kernel
def roots_by_newton(x: VEC, loss: SCALAR):
    for i in x:
        r, steps = 1.0, 0
        while oc.abs(r * r * r - x[i] - 1) > 1e-13 and steps < 60:
            r -= (r * r * r - x[i] - 1) / (3 * r * r)
            steps += 1
        loss[None] += r


@pytest.mark.parametrize(
    "kernel",
    [
        nested_whiles,
        powers_of_a_matrix,
        sorted_in_a_variable,
        pairs_of_a_triangle,
        powers_by_their_place,
        roots_by_newton,
    ],
)
def test_kernels_of_one_array(reals, kernel):
    check(kernel, X)


def test_rows_of_a_sparse_matrix(reals):
    @oc.kernel
    def multiply(x: VEC, row: INTS, column: INTS, y: VEC, out: VEC):
        for i in out:
            s = 0.0
            for k in range(row[i], row[i + 1]):
                s += x[k] * y[column[k]]
            out[i] = s

    @oc.kernel
    def measure(out: VEC, loss: SCALAR):
        for i in out:
            loss[None] += oc.sin(out[i]) * out[i]

    def run(x, loss):
        row, column = integers([0, 2, 2, 5, 6]), integers([0, 1, 0, 2, 3, 2])
        y, once, twice = made([0.5, 0.2, 0.9, -0.4]), made(np.zeros(4)), made(np.zeros(4))
        multiply(x, row, column, y, once)
        multiply(x, row, column, once, twice)
        measure(twice, loss)

    check(run, X)


def test_steps_in_place_and_in_order(reals):
    @oc.kernel
    def begin(x: VEC, p: VEC, v: VEC):
        for i in x:
            p[i] = x[i]
            v[i] = x[(i + 1) % 6]

    @oc.kernel
    def move(p: VEC, v: VEC, steps: INTS):
        for i in p:
            for _ in range(steps[0]):
                v[i] += -0.1 * oc.sin(p[i]) * p[i]
                p[i] += 0.1 * v[i]
                if p[i] > 0.8:
                    v[i] = -0.5 * v[i]

    @oc.kernel
    def relax(x: VEC, p: VEC, v: VEC, loss: SCALAR):
        oc.loop_config(serialize=True)
        for _ in range(3):
            for i in range(1, 5):
                p[i] = 0.5 * (p[i - 1] + p[i + 1]) * oc.cos(x[i]) + x[i] * v[i]
        for i in p:
            loss[None] += p[i] * p[i] + v[i]

    def run(x, loss):
        p, v = made(np.zeros(6)), made(np.zeros(6))
        begin(x, p, v)
        move(p, v, integers([7]))
        relax(x, p, v, loss)

    check(run, X)


@dataclasses.dataclass
class Body:
    mass: VEC
    speed: VEC
    drag: oc.f64


def test_members_of_a_dataclass(reals):
    @oc.kernel
    def brake(body: Body, loss: SCALAR):
        for i in body.speed:
            speed = body.speed[i]
            while speed > 0.3:
                speed = speed * 0.6 * body.drag
                body.mass[i] = body.mass[i] + speed * speed
            loss[None] += body.mass[i] * speed

    check(lambda x, loss: brake(Body(made(np.zeros(6)), x, 0.9), loss), X)


def test_a_class_with_layers(reals):
    @oc.data_oriented
    class Net:
        def __init__(self):
            self.hidden = oc.Vector.field(3, oc.f64, shape=6, needs_grad=True)
            self.weights = oc.Matrix.field(3, 3, oc.f64, shape=2, needs_grad=True)
            self.weights.from_numpy(np.random.default_rng(1).uniform(-1, 1, (2, 3, 3)))

        @oc.func
        def activate(self, v):
            return oc.tanh(v) * v

        @oc.kernel
        def forward(self, x: VEC):
            for i in self.hidden:
                v = V3([x[i], x[(i + 1) % 6], 1.0])
                for layer in range(2):
                    v = self.activate(self.weights[layer] @ v)
                self.hidden[i] = v

        @oc.kernel
        def measure(self, loss: SCALAR):
            for i in self.hidden:
                loss[None] += self.hidden[i].dot(self.hidden[i]) * self.hidden[i].x

    net = Net()

    def run(x, loss):
        net.forward(x)
        net.measure(loss)

    check(run, X)


def test_structs_in_fields_that_change(reals):
    particles = oc.types.struct(p=V2, m=oc.f64).field(shape=6, needs_grad=True, layout=oc.Layout.SOA)

    @oc.kernel
    def place(x: VEC):
        for i in particles:
            particles[i].p = V2([x[i], x[(i + 1) % 6]])
            particles[i].m = x[i] * 2

    @oc.kernel
    def grow(loss: SCALAR):
        for i in particles:
            q = particles[i]
            for _ in range(3):
                q.p = q.p * q.m + oc.Vector([0.1, q.p[0]])
                q.m *= 0.5
            particles[i].m += q.p.norm()
            loss[None] += particles[i].m * particles[i].p[1]

    def run(x, loss):
        place(x)
        grow(loss)

    check(run, X)


def test_several_tasks_that_scatter_and_gather(reals):
    @oc.kernel
    def transfer(x: VEC, grid: VEC, cell: INTS, loss: SCALAR):
        for i in grid:
            grid[i] = 0.0
        for i in x:
            for k in range(3):
                grid[(cell[i] + k) % grid.shape[0]] += x[i] * (k + 1) * x[i]
        for i in grid:
            if grid[i] > 1.0:
                grid[i] = oc.sqrt(grid[i])
        for i in x:
            loss[None] += x[i] * grid[cell[i]]

    check(lambda x, loss: transfer(x, made(np.zeros(4)), integers([0, 3, 1, 2, 3, 0]), loss), X)


@pytest.mark.host_access
def test_tensors_of_torch(reals):
    torch = pytest.importorskip("torch")

    @oc.kernel
    def walk(x: VEC, steps: INTS, loss: VEC):
        for i in x:
            v = x[i]
            for k in range(steps[i]):
                v = oc.cos(v) * x[(i + k) % 6]
                if v > 0.9:
                    break
            loss[0] += v * v

    def value(at):
        x, loss = torch.tensor(at), torch.zeros(1, dtype=torch.float64)
        walk(x, torch.tensor([3, 0, 5, 1, 2, 4], dtype=torch.int32), loss)
        return float(loss[0])

    x = torch.tensor(X, dtype=torch.float64, requires_grad=True)
    loss = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    with oc.ad.Tape(loss):
        walk(x, torch.tensor([3, 0, 5, 1, 2, 4], dtype=torch.int32), loss)
    np.testing.assert_allclose(x.grad.numpy(), differences(value, X), rtol=1e-6, atol=1e-6)
