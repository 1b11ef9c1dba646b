"""Numbers behind objects: part of the code at first, arguments once they have changed, and never stale."""

import dataclasses
import math

import numpy as np
import pytest

import octants as oc


def compilations(kernel) -> int:
    return len(kernel.compile_statistics())


@oc.data_oriented
class Simulation:
    def __init__(self, n=8):
        self.n = n
        self.t = 0.25
        self.dt = 0.5
        self.at = 1
        self.limits = [2.0, 3]
        self.x = oc.ndarray(oc.f32, 32)
        self.y = oc.ndarray(oc.f64, 8)

    @oc.func
    def half(self, a):
        return 0.5 * self.t * a

    @oc.real_func
    def twice(self, a: oc.f32) -> oc.f32:
        return 2.0 * a * self.t

    @oc.kernel
    def step(self) -> oc.f32:
        result = 0.0
        for i in range(self.n):
            self.x[i] = self.t * self.dt + oc.sin(self.t * 1e6) + self.half(2.0)
        for i, j in oc.ndrange(self.at, (1, self.n // 2)):
            self.x[16 + i] += j - self.at
        if self.t > 1.0 and self.dt < 2.5:
            result = -self.t
        u = oc.Vector([self.t, self.at, self.limits[0]])
        w = oc.math.vec3(1, 2, 3) * self.dt
        self.y[0] = oc.cast(self.t, oc.f64) / 3
        self.y[1] = oc.f64(self.t) + int(self.t * 10) + float(self.at)
        self.y[2] = max(self.t, self.limits[1]) + min(self.at, 2) + abs(-self.dt) ** 2
        self.y[3] = self.x[self.at] if not self.at == 3 else self.t
        self.y[4] = oc.math.sqrt(self.dt) + self.twice(1.0) + u.sum() + w.sum()
        self.y[5] = (self.at + 1) % 3 + (self.at << 2) - (self.at & 1) + self.at // 2
        self.y[6] = -(self.dt - self.t) * (self.at + 0.5) / 3
        return result + self.t


def test_changed_numbers_are_arguments_and_give_the_same_bits(arch):
    lasting = Simulation()
    lasting.step()
    generator = np.random.default_rng(3)
    for round_ in range(6):
        numbers = dict(t=generator.uniform(0, 2), dt=generator.uniform(0.1, 4), at=round_ % 5, n=4 + round_)
        limit = generator.uniform(0, 4)
        results = []
        # The kernel of a class that is new has no numbers that were seen to change.
        fresh = type("Fresh", (Simulation,), {"step": oc.kernel(Simulation.step.__wrapped__)})()
        for one in (lasting, fresh):
            vars(one).update(numbers)
            one.limits[0] = limit
            one.x.fill(0)
            results.append((one.step(), one.x.to_numpy(), one.y.to_numpy()))
        np.testing.assert_array_equal(results[0][0], results[1][0])
        np.testing.assert_array_equal(results[0][1], results[1][1])
        # A product and a sum may be one operation where an operand is known.
        np.testing.assert_allclose(results[0][2], results[1][2], rtol=3e-7)


def test_a_number_that_changes_is_compiled_for_once_more():
    @oc.data_oriented
    class Clock:
        def __init__(self):
            self.t, self.k = 0.0, 0

        @oc.kernel
        def now(self) -> oc.f32:
            return 2 * self.t + self.k

    clock = Clock()
    for i in range(50):
        clock.t = i / 4
        assert clock.now() == i / 2
    assert compilations(Clock.now) == 2
    for i in range(50):
        clock.k, clock.t = i, i + 0.5
        assert clock.now() == 3 * i + 1
    assert compilations(Clock.now) == 3
    # Another type is another kind of number.
    clock.t = 1
    assert clock.now() == 51
    # Back to what was there.
    clock.t = 1.5
    before = compilations(Clock.now)
    assert clock.now() == 52 and compilations(Clock.now) == before


def test_what_a_number_decides_is_compiled_for_it():
    @oc.data_oriented
    class Shape:
        def __init__(self):
            self.n, self.scale = 2, 1.0

        @oc.kernel
        def total(self) -> oc.f32:
            v = oc.Vector([self.scale] * self.n)
            s = 0.0
            for i in oc.static(range(self.n)):
                s += v[i] + oc.static(self.n * 10)
            return s

    shape = Shape()
    for n in (2, 3, 4, 3):
        for scale in (1.0, 2.0, 3.0):
            shape.n, shape.scale = n, scale
            assert shape.total() == n * (scale + 10 * n)
    # One for the first numbers, one that is told of the scale, and one for each other length.
    assert compilations(Shape.total) <= 5


def test_members_of_templates_dataclasses_and_captured_objects(arch):
    class Config:
        def __init__(self):
            self.gain, self.inner = 1.0, dataclasses.make_dataclass("Inner", ["offset"])(0.5)

    held = Config()

    @oc.kernel
    def scaled(config: oc.template(), x: oc.f32) -> oc.f32:
        return config.gain * x + config.inner.offset

    @oc.kernel
    def captured(x: oc.f32) -> oc.f32:
        return held.gain * x + held.inner.offset

    config = Config()
    for i in range(10):
        config.gain, config.inner.offset = i * 0.5, i + 0.25
        held.gain, held.inner.offset = i * 1.5, i + 0.75
        assert scaled(config, 2.0) == 2 * i + 0.25
        assert captured(2.0) == 4 * i + 0.75
    assert compilations(scaled) <= 3 and compilations(captured) <= 3


def test_static_code_sees_the_numbers_of_captured_objects():
    class Config:
        def __init__(self):
            self.n, self.on = 2, True

    held = Config()

    @oc.kernel
    def unrolled() -> oc.i32:
        s = 0
        for i in oc.static(range(held.n)):
            s += 1
        if oc.static(held.on):
            s += 100
        return s

    for n in (2, 5, 3):
        for on in (True, False):
            held.n, held.on = n, on
            assert unrolled() == n + 100 * on


def test_numbers_outside_of_what_the_code_is_for():
    @oc.data_oriented
    class Table:
        def __init__(self):
            self.at, self.divisor = 0, 1
            self.x = oc.ndarray(oc.i32, 4)

        @oc.kernel
        def read(self) -> oc.i32:
            return self.x[self.at]

        @oc.kernel
        def value(self) -> oc.i32:
            return self.at

        @oc.kernel
        def quotient(self) -> oc.i32:
            return 12 // self.divisor

    table = Table()
    for at in range(4):
        table.at = at
        assert table.read() == 0 and table.value() == at
    table.at = -1
    with pytest.raises(oc.OctantsCompilationError, match="Negative indices"):
        table.read()
    assert table.value() == -1
    table.at = 2**40
    with pytest.raises(oc.OctantsCompilationError, match="exceeded the range"):
        table.value()
    for divisor in (2, 3, 4):
        table.divisor = divisor
        assert table.quotient() == 12 // divisor
    table.divisor = 0
    with pytest.raises((oc.OctantsCompilationError, ZeroDivisionError)):
        table.quotient()
    table.divisor = 6
    assert table.quotient() == 2


def test_numpy_numbers_and_special_values():
    @oc.data_oriented
    class Holder:
        def __init__(self):
            self.a = np.float32(0.5)

        @oc.kernel
        def get(self) -> oc.f32:
            return self.a * 2

    holder = Holder()
    for value in (0.5, 1.5, math.inf, -0.0, 3.25):
        holder.a = np.float32(value)
        assert np.float32(holder.get()).tobytes() == np.float32(value * 2).tobytes()
    holder.a = math.nan
    assert math.isnan(holder.get())
    assert compilations(Holder.get) <= 4


def test_gradients_of_kernels_with_changing_numbers(arch):
    @oc.data_oriented
    class Loss:
        def __init__(self):
            self.scale = 1.0
            self.x = oc.field(oc.f32, 4, needs_grad=True)
            self.loss = oc.field(oc.f32, (), needs_grad=True)

        @oc.kernel
        def run(self):
            for i in self.x:
                self.loss[None] += self.scale * self.x[i] ** 2

    loss = Loss()
    for i in range(1, 4):
        loss.scale = float(i)
        loss.x.fill(3.0)
        loss.x.grad.fill(0)
        loss.loss[None] = 0
        loss.run()
        loss.loss.grad[None] = 1.0
        loss.run.grad()
        assert loss.loss[None] == 36 * i and loss.x.grad[2] == 6 * i


def test_members_are_what_attributes_are():
    class Base:
        scale = 2.0

        def __init__(self):
            self.a, self.b, self.__dict__["computed"] = 1.0, 3.0, 99.0
            self.reads = 0

        @property
        def computed(self):
            return self.a * 10

    @oc.data_oriented
    class Plain(Base):
        @oc.kernel
        def total(self) -> oc.f32:
            return self.a + self.b + self.computed + self.scale

    plain = Plain()
    assert plain.total() == 1 + 3 + 10 + 2
    plain.a = 2.0
    assert plain.total() == 2 + 3 + 20 + 2
    plain.scale = 5.0
    assert plain.total() == 2 + 3 + 20 + 5
    del plain.scale
    Base.scale = 7.0
    assert plain.total() == 2 + 3 + 20 + 7
    del plain.b
    with pytest.raises(AttributeError):
        plain.total()

    @oc.data_oriented
    class Slots:
        __slots__ = ("a", "__weakref__")

        @oc.kernel
        def twice(self) -> oc.f32:
            return 2 * self.a

    @oc.data_oriented
    class Computing:
        def __getattribute__(self, name):
            value = object.__getattribute__(self, name)
            return value + 0.5 if name == "a" else value

        @oc.kernel
        def twice(self) -> oc.f32:
            return 2 * self.a

    for one, shift in ((Slots(), 0.0), (Computing(), 0.5)):
        for a in (1.0, 2.0, 4.0):
            one.a = a
            assert one.twice() == 2 * (a + shift)


@oc.data_oriented
class Wind:
    def __init__(self):
        self.v = oc.Vector([1.0, 2.0, 3.0])
        self.m = oc.Matrix([[1.0, 2.0], [3.0, 4.0]])
        self.cell = oc.Vector([1, 2])
        self.typed = oc.Vector([0.1, 0.2], dt=oc.f64)
        self.x = oc.ndarray(oc.f32, 16)
        self.y = oc.ndarray(oc.f64, 8)

    @oc.func
    def along(self, a):
        return a.dot(self.v)

    @oc.kernel
    def blow(self):
        for i in self.x:
            self.x[i] = self.v[0] * i + self.v.y
        for i in range(self.cell[1]):
            self.x[self.cell.x + i] += self.v[i % 3] + self.v.norm()
        u = self.m @ self.v.xy + self.v[1:]
        w = 2.0 * self.v
        self.y[0] = u[0] + u[1] * self.m[1, 0] + self.m[0, 1]
        self.y[1] = self.along(oc.math.vec3(1, 2, 3)) + w.sum() + self.m.trace()
        self.y[2] = self.v[0]
        self.y[3] = self.typed[1] + oc.cast(self.typed, oc.f64).sum()
        self.y[4] = self.cell[0] / self.cell[1] + self.cell[0] // 2
        self.y[5] = max(self.v) if all(self.v > 0.25) else self.v.z


def test_vectors_that_changed_are_arguments(arch):
    lasting = Wind()
    lasting.blow()
    generator = np.random.default_rng(4)
    counts = []
    for _ in range(5):
        v, m, typed = generator.uniform(0, 1, 3), generator.uniform(0, 1, (2, 2)), generator.uniform(0, 1, 2)
        cell = generator.integers(1, 5, 2)
        fresh = type("Fresh", (Wind,), {"blow": oc.kernel(Wind.blow.__wrapped__)})()
        for one in (lasting, fresh):
            one.v, one.m = oc.Vector(v.tolist()), oc.Matrix(m.tolist())
            one.cell = oc.Vector(cell.tolist())
            # In place, too.
            one.typed[0], one.typed[1] = typed
            one.blow()
        np.testing.assert_allclose(lasting.x.to_numpy(), fresh.x.to_numpy(), rtol=3e-7)
        np.testing.assert_allclose(lasting.y.to_numpy(), fresh.y.to_numpy(), rtol=3e-7)
        assert [lasting.y[n] for n in (2, 3, 4)] == [fresh.y[n] for n in (2, 3, 4)]
        counts.append(compilations(Wind.blow))
    assert counts[0] == counts[-1]


def test_what_a_vector_decides_is_compiled_for_it():
    @oc.data_oriented
    class Shape:
        def __init__(self):
            self.n = oc.Vector([2, 3])
            self.scale = oc.Vector([1.0, 2.0])

        @oc.kernel
        def total(self) -> oc.f32:
            s = 0.0
            for i in oc.static(range(self.n[0])):
                s += i * self.scale[0]
            for i in oc.static(range(len(self.scale))):
                s += self.scale[i]
            return s + oc.static(self.scale[1] * 2)

    shape = Shape()
    for n in ([2, 3], [3, 3], [4, 1], [3, 3]):
        for scale in ([1.0, 2.0], [5.0, 1.0], [1, 2], [2.0, 3.0, 4.0], [7.0, 3.0]):
            shape.n, shape.scale = oc.Vector(n), oc.Vector(scale)
            assert shape.total() == sum(range(n[0])) * scale[0] + sum(scale) + scale[1] * 2, (n, scale)


def test_a_vector_of_another_shape_or_kind_is_another_one():
    @oc.data_oriented
    class Holder:
        def __init__(self):
            self.v = oc.Vector([1.0, 2.0])

        @oc.kernel
        def total(self) -> oc.f32:
            return self.v.sum() / 2 + self.v[1] // 2

    holder = Holder()
    for entries in (
        [1.0, 2.0],
        [3.0, 4.0],
        [5.0, 6.0, 7.0],
        [5.5, 6.0, 8.0],
        [1, 3],
        [2, 5],
        [3.0, 4.5],
        [True, False],
    ):
        holder.v = oc.Vector(entries)
        assert holder.total() == sum(entries) / 2 + entries[1] // 2, entries
    holder.v = None
    with pytest.raises(oc.OctantsCompilationError):
        holder.total()


def test_vectors_of_objects_that_code_names_are_read_anew():
    class Named:
        v = None

    named = Named()

    @oc.kernel
    def total() -> oc.f32:
        return named.v[0] + named.v.sum()

    for entries in ([1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [5.0, 6.0, 7.0]):
        named.v = oc.Vector(entries)
        assert total() == entries[0] + sum(entries)
    named.v[0] = 1.0
    assert total() == 15
    assert compilations(total) == 3
