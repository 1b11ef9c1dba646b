"""Classes whose methods are kernels."""

import copy
import dataclasses
import enum
import gc
import pickle
import weakref

import numpy as np
import pytest

import octants as oc

pytestmark = pytest.mark.host_access


class Mode(enum.IntEnum):
    FAST = 3


@oc.data_oriented
class Grid:
    def __init__(self, n):
        self.n = n
        self.x = oc.ndarray(oc.f32, n)
        self.parts = [oc.ndarray(oc.f32, n), oc.ndarray(oc.f32, n)]
        self.table = {"a": 2, "b": oc.ndarray(oc.f32, n)}
        self.me = self
        self.mode = Mode.FAST

    @property
    def doubled(self):
        return self.n * 2

    @staticmethod
    @oc.func
    def squared(v):
        return v * v

    @oc.func
    def value(self, i):
        return i + self.n

    @oc.kernel
    def run(self):
        for i in range(self.n):
            self.x[i] = self.value(i) + self.squared(2.0)

    @oc.kernel
    def total(self) -> oc.f32:
        s = 0.0
        for i in self.x:
            s += self.x[i]
        return s + self.doubled + self.mode

    @oc.kernel
    def spread(self, k: oc.i32):
        for i in self.x:
            for p in oc.static(range(2)):
                self.parts[p][i] = p + k
            self.table["b"][i] = self.table["a"] + self.me.me.n


@oc.data_oriented
class Child(Grid):
    @oc.func
    def value(self, i):
        return super().value(i) * 2


def test_kernels_funcs_and_properties_of_an_object(arch):
    grid = Grid(4)
    grid.run()
    assert grid.x.to_numpy().tolist() == [8, 9, 10, 11]
    assert grid.total() == 38 + 8 + 3
    assert Grid.run is Grid.__dict__["run"] and grid.run.__name__ == "run"


def test_inheritance_and_super(arch):
    child = Child(3)
    child.run()
    assert child.x.to_numpy().tolist() == [(i + 3) * 2 + 4 for i in range(3)]
    assert Grid(3).total() == 9


def test_members_of_lists_and_dicts_and_cycles(arch):
    grid = Grid(3)
    grid.spread(k=5)
    assert grid.parts[0][2] == 5 and grid.parts[1][2] == 6 and grid.table["b"][0] == 5
    grid.table["a"] = 10
    grid.parts[1] = oc.ndarray(oc.f64, 3)
    grid.spread(7)
    assert grid.parts[1][0] == 8 and grid.table["b"][0] == 13


def test_a_changed_number_is_never_stale():
    grid = Grid(4)
    grid.run()
    grid.n = 2
    grid.x = oc.ndarray(oc.f32, 4)
    grid.run()
    assert grid.x.to_numpy().tolist() == [6, 7, 0, 0]
    grid.n = 4
    before = len(Grid.run.compile_statistics())
    grid.run()
    assert grid.x.to_numpy().tolist() == [8, 9, 10, 11]
    assert len(Grid.run.compile_statistics()) == before


def test_arrays_are_read_from_the_object_at_each_launch():
    grid = Grid(4)
    grid.run()
    first = grid.x
    grid.x = oc.ndarray(oc.f32, 4)
    grid.run()
    assert first[0] == grid.x[0] == 8
    count = len(Grid.run.compile_statistics())
    grid.x = oc.ndarray(oc.f64, 4)
    grid.run()
    assert grid.x[3] == 11 and len(Grid.run.compile_statistics()) == count + 1
    grid.x = first
    first.fill(0)
    grid.run()
    assert first[3] == 11 and len(Grid.run.compile_statistics()) == count + 1
    del grid.x
    with pytest.raises(AttributeError):
        grid.run()


def test_numpy_arrays_as_members(arch):
    grid = Grid(3)
    grid.x = np.zeros(3, np.float32)
    grid.run()
    assert grid.x.tolist() == [7, 8, 9]


def test_objects_do_not_share_what_they_bake():
    grids = [Grid(n) for n in (2, 3, 4)]
    for grid in grids * 2:
        grid.run()
        assert grid.x.to_numpy().tolist() == [i + grid.n + 4 for i in range(grid.n)]


def test_kernels_keep_no_object_alive():
    grid = Grid(2)
    grid.run()
    grid.me = None
    seen = weakref.ref(grid)
    del grid
    gc.collect()
    assert seen() is None


def test_nested_objects_and_dataclasses(arch):
    @dataclasses.dataclass(frozen=True)
    class Settings:
        scale: float
        data: oc.Ndarray

    @oc.data_oriented
    class World:
        def __init__(self):
            self.grid = Grid(3)
            self.settings = Settings(2.0, oc.ndarray(oc.f32, 3))
            self.other = self.grid

        @oc.kernel
        def step(self):
            for i in range(self.grid.n):
                self.settings.data[i] = self.grid.value(i) * self.settings.scale + self.other.n

    world = World()
    world.step()
    assert world.settings.data.to_numpy().tolist() == [9, 11, 13]
    world.settings = Settings(1.0, oc.ndarray(oc.f32, 3))
    world.step()
    assert world.settings.data.to_numpy().tolist() == [6, 7, 8]
    world.other = Grid(5)
    world.step()
    assert world.settings.data.to_numpy().tolist() == [8, 9, 10]


def test_a_func_held_by_an_object(arch):
    @oc.func
    def plus(a, b):
        return a + b

    @oc.func
    def times(a, b):
        return a * b

    @oc.data_oriented
    class Fold:
        def __init__(self, combine):
            self.combine = combine

        @oc.kernel
        def run(self, a: oc.i32, b: oc.i32) -> oc.i32:
            return self.combine(a, b)

    fold = Fold(plus)
    assert fold.run(3, 4) == 7
    fold.combine = times
    assert fold.run(3, 4) == 12


@oc.data_oriented(template_primitives=False)
class Lifted:
    def __init__(self):
        self.a, self.b, self.inner, self.flag = 2, 0.5, [3], True

    @oc.kernel
    def run(self) -> oc.f32:
        return self.a * self.b + self.inner[0] + self.flag

    @oc.kernel
    def unrolled(self) -> oc.i32:
        x = 0
        for _ in oc.static(range(self.a)):
            x += 1
        return x

    @oc.kernel
    def assign(self):
        self.a = 3


def test_lifted_numbers_do_not_compile_again(arch):
    lifted = Lifted()
    assert lifted.run() == 5.0
    count = len(Lifted.run.compile_statistics())
    lifted.a, lifted.b, lifted.inner[0], lifted.flag = 6, 1.5, 1, False
    assert lifted.run() == 10.0
    lifted.b = 2
    assert lifted.run() == 13.0
    assert len(Lifted.run.compile_statistics()) == count
    lifted.a = 1.5
    with pytest.raises(TypeError, match="was an integer"):
        lifted.run()


def test_lifted_numbers_are_not_static_and_not_assigned():
    with pytest.raises(oc.OctantsSyntaxError, match="known only when the kernel runs"):
        Lifted().unrolled()
    with pytest.raises(oc.OctantsCompilationError):
        Lifted().assign()


def test_a_class_without_the_decorator():
    class Plain:
        @oc.kernel
        def run(self):
            pass

    with pytest.raises(oc.OctantsSyntaxError, match="Please decorate class Plain"):
        Plain().run()


def test_python_methods_that_run_while_compiling_see_changes():
    @oc.data_oriented
    class Step:
        def __init__(self):
            self.dt, self.factors = 0.5, [1, 2]

        def half(self):
            return self.dt / 2

        @oc.kernel
        def run(self) -> oc.f32:
            return self.half() + sum(self.factors)

    step = Step()
    with pytest.warns(SyntaxWarning):
        assert step.run() == 3.25
    step.dt = 2.0
    with pytest.warns(SyntaxWarning):
        assert step.run() == 4.0
    step.factors[0] = 5
    with pytest.warns(SyntaxWarning):
        assert step.run() == 8.0


@oc.data_oriented
class Unit:
    FACTOR = 3

    @classmethod
    @oc.func
    def scaled(cls, v):
        return v * cls.FACTOR

    @classmethod
    def doubled(cls):
        return cls.FACTOR * 2

    def tripled(self):
        return self.FACTOR * 3

    @oc.kernel
    def by_func(self, v: oc.i32) -> oc.i32:
        return self.scaled(v)

    @oc.kernel
    def by_python(self) -> oc.i32:
        return self.doubled() + self.tripled()

    @classmethod
    @oc.kernel
    def of_class(cls, v: oc.i32) -> oc.i32:
        return cls.scaled(v) + cls.FACTOR + cls.doubled()


def test_class_methods_see_their_class_as_it_is(arch, monkeypatch):
    class Large(Unit):
        FACTOR = 10

    def results(kind):
        return kind().by_func(2), kind().by_python(), kind.of_class(2), kind().of_class(2)

    assert results(Unit) == (6, 15, 15, 15)
    assert results(Large) == (20, 50, 50, 50)
    monkeypatch.setattr(Unit, "FACTOR", 4)
    assert results(Unit) == (8, 20, 20, 20)
    assert results(Large) == (20, 50, 50, 50)
    one = Unit()
    assert one.by_python() == 20
    Unit.FACTOR = 5
    assert one.by_python() == 25 and one.by_func(2) == 10


@oc.data_oriented
class Polynomial:
    """Special methods are funcs."""

    def __init__(self, *factors):
        self.factors = oc.field(oc.f32, shape=len(factors))
        self.factors.from_numpy(np.array(factors, np.float32))
        self.order = len(factors)

    @oc.func
    def __getitem__(self, i):
        return self.factors[i]

    @oc.func
    def __call__(self, x):
        value = 0.0
        for i in oc.static(range(self.order)):
            value = value * x + self[self.order - 1 - i]
        return value

    @oc.func
    def __add__(self, other):
        return self[0] + other

    @oc.func
    def __lt__(self, other):
        return self[0] < other

    def __len__(self):
        return self.order

    @oc.func
    def __rmul__(self, other):
        return other * self[self.order - 1]

    @oc.kernel
    def at(self, x: oc.f32) -> oc.f32:
        return self(x)

    @oc.kernel
    def at_two(self) -> oc.f32:
        return self(2) + self[1]

    @oc.kernel
    def sums(self, x: oc.f32) -> oc.f32:
        return (self + x) + 100 * (self + 1) + x * self

    @oc.kernel
    def comparisons(self, x: oc.f32) -> oc.i32:
        return (1 if self < x else 0) + (10 if x > self else 0) + 100 * len(self)


@pytest.mark.filterwarnings("error")
def test_special_methods_that_are_funcs(arch):
    one, other = Polynomial(1, 2, 3), Polynomial(5, 7)
    assert (one.at(3), other.at(3)) == (34, 26)
    assert (one.at_two(), other.at_two()) == (17 + 2, 19 + 7)
    assert one.sums(0.5) == 1.5 + 200 + 1.5
    assert (one.comparisons(0.5), one.comparisons(1.5), other.comparisons(6.0)) == (300, 311, 211)
    other.order = 1
    assert other.comparisons(6.0) == 111
    other.order = 2
    one.factors[0] = 10
    assert one.at(3) == 43


def test_items_that_a_func_gives_are_not_looped_over():
    @oc.kernel
    def k(of: oc.template()) -> oc.f32:
        total = 0.0
        for item in oc.static(of):
            total += item
        return total

    with pytest.raises(oc.OctantsSyntaxError, match="its `__getitem__` is a func"):
        k(Polynomial(1, 2))


def test_plain_python_calls_funcs_with_what_is_known(arch):
    """A function that is not decorated may call a func also where all arguments are constants."""

    @oc.func
    def successor(v):
        return v + 1

    def twice(v):
        return successor(v) * 2

    @oc.kernel
    def k(x: oc.i32) -> oc.i32:
        return twice(3) + twice(x)

    with pytest.warns(SyntaxWarning, match="calling the Python function"):
        assert k(10) == 8 + 22
    with pytest.raises(oc.OctantsSyntaxError, match="was called from ordinary Python"):
        twice(3)


def test_a_class_method_of_a_class_without_the_decorator():
    class Plain:
        @classmethod
        @oc.kernel
        def k(cls):
            pass

    with pytest.raises(oc.OctantsSyntaxError, match="Please decorate class Plain with @oc.data_oriented"):
        Plain.k()


def test_vectors_and_structs_changed_in_place_are_seen(arch):
    @oc.data_oriented
    class World:
        def __init__(self):
            self.gravity = oc.Vector([0.0, -9.5])
            self.box = oc.Struct(size=2, at=oc.Vector([1.0, 2.0]))

        @oc.kernel
        def run(self) -> oc.f32:
            return self.gravity[1] + self.box.size + self.box.at[0]

    world = World()
    assert world.run() == -6.5
    world.gravity[1] = 1.0
    assert world.run() == 4.0
    world.box.at[0] = 3.0
    world.box.size = 4
    assert world.run() == 8.0


def test_matrices_and_rows_of_numpy_members_follow_them(arch):
    @oc.data_oriented
    class Gate:
        def __init__(self):
            self.m = np.array([[1, 2], [3, 4]], dtype=np.float32)

        @oc.kernel
        def total(self) -> oc.f32:
            m = oc.Matrix(self.m)
            return m[1, 0] * 100 + m.sum()

        @oc.kernel
        def last(self) -> oc.f32:
            row = oc.Vector(self.m[-1])
            return row.sum() + self.m[0][1]

        @oc.kernel
        def beyond(self) -> oc.f32:
            return self.m[2][0]

    gate = Gate()
    assert (gate.total(), gate.last()) == (310, 9)
    gate.m[1, 0] = 5
    assert (gate.total(), gate.last()) == (512, 11)
    with pytest.raises(oc.OctantsCompilationError, match="index 2 is out of range of an array with 2 rows"):
        gate.beyond()
    gate.m = np.ones((3, 4), dtype=np.float32)
    assert (gate.total(), gate.last(), gate.beyond()) == (112, 5, 1)


def test_a_list_that_holds_itself_does_not_hang():
    @oc.data_oriented
    class Loop:
        def __init__(self):
            self.items = [1, 2]
            self.items.append(self.items)

        @oc.kernel
        def run(self) -> oc.i32:
            return oc.static(self.items[0] + len(self.items[2][2]))

    assert Loop().run() == 4


def test_arrays_made_by_a_property_live_through_the_launch(arch):
    seen = []

    @oc.data_oriented
    class Fresh:
        @property
        def data(self):
            seen.append(np.arange(1000, dtype=np.float64))
            return seen.pop() + 1

        @oc.kernel
        def total(self) -> oc.f64:
            s = oc.f64(0.0)
            for i in range(1000):
                s += self.data[i]
            return s

    fresh = Fresh()
    assert [fresh.total() for _ in range(20)] == [500500.0] * 20


def test_what_a_dataclass_in_an_object_declares_clamped_is_clamped(arch):
    @dataclasses.dataclass(frozen=True)
    class Parts:
        view: "oc.BufferView[oc.f32, 'clamp']"
        array: oc.types.ndarray(dtype=oc.f32, ndim=1, boundary="clamp")
        unevaluated: "no_such_name"  # noqa: F821

    @oc.data_oriented
    class Holder:
        def __init__(self, parts):
            self.parts = parts
            self.listed = [parts]

        @oc.kernel
        def at(self, i: oc.i32) -> oc.types.vector(3, oc.f32):
            return oc.Vector([self.parts.view[i], self.parts.array[i], self.listed[0].view[i]])

        @oc.kernel
        def plain(self) -> oc.f32:
            return self.parts.unevaluated[1]

    array = oc.ndarray(oc.f32, 6)
    array.from_numpy(np.arange(6, dtype=np.float32))
    holder = Holder(Parts(array[2:4], array, array))
    assert [list(holder.at(i)) for i in (-7, 0, 1, 100)] == [[2, 0, 2], [2, 0, 2], [3, 1, 3], [3, 5, 3]]
    assert holder.plain() == 1
    # Another object whose view lies elsewhere.
    assert list(Holder(Parts(array[1:2], array, array)).at(9)) == [1, 5, 1]


def test_structs_in_an_object_are_constants_and_their_numbers_literals(arch):
    Kind = oc.types.struct(key=oc.u64, small=oc.u8, count=oc.i64)

    @dataclasses.dataclass(frozen=True)
    class Parts:
        kind: Kind

    @oc.data_oriented
    class Holder:
        def __init__(self, parts):
            self.parts = parts

        @oc.kernel
        def key(self) -> oc.u64:
            return oc.u64(self.parts.kind.key)

        @oc.kernel
        def untyped(self) -> oc.u64:
            return self.parts.kind.key

        @oc.kernel
        def calculated(self) -> oc.i32:
            oc.static_assert(self.parts.kind.count == 3)
            return self.parts.kind.small + oc.Vector.zero(oc.i32, self.parts.kind.count).n + 100

    holder = Holder(Parts(Kind(key=2**64 - 5, small=200, count=3)))
    assert holder.key() == 2**64 - 5
    assert holder.calculated() == 303
    with pytest.raises(oc.OctantsTypeError, match=r"exceeded the range of default_ip(.|\n)*oc\.u64"):
        holder.untyped()


@oc.func
def tripled(v):
    return v * 3


@oc.kernel
def tripled_by_kernel(v: oc.i32) -> oc.i32:
    return tripled(v)


class Material:
    """Chooses its funcs when it is made."""

    def __init__(self, scale):
        self.scale = scale
        self.response = self.scaled
        self.after = tripled

    @oc.func
    def scaled(self, v):
        return v * self.scale


def test_funcs_and_kernels_are_copied_and_pickled_as_functions_are(arch):
    for known in (tripled, tripled_by_kernel):
        assert copy.copy(known) is known and copy.deepcopy(known) is known
        assert pickle.loads(pickle.dumps(known)) is known

    # A func of an object follows the copy of the object.
    material = Material(5)
    copies = copy.deepcopy(material), pickle.loads(pickle.dumps(material))
    material.scale = 7
    for copied in copies:

        @oc.kernel
        def k(v: oc.i32) -> oc.i32:
            return copied.after(copied.response(v))

        assert k(2) == 30

    @oc.kernel
    def original(v: oc.i32) -> oc.i32:
        return material.after(material.response(v))

    assert original(2) == 42


class Described(type):
    """Its classes find something else under the name of a func of their objects."""

    @property
    def scaled(cls):
        return "of the class"


class Doubling:
    @oc.func
    def scaled(self, v):
        return 2 * v


@oc.data_oriented
class Covered(Doubling, metaclass=Described):
    @oc.kernel
    def run(self, v: oc.i32) -> oc.i32:
        return self.scaled(v)


def test_a_property_of_the_class_of_the_class_hides_no_func(monkeypatch):
    one = Covered()
    assert [one.run(3) for _ in range(5)] == [6] * 5

    @oc.func
    def tripled(self, v):
        return 3 * v

    monkeypatch.setattr(Doubling, "scaled", tripled)
    assert [one.run(3) for _ in range(5)] == [9] * 5
    monkeypatch.undo()
    assert [one.run(3) for _ in range(5)] == [6] * 5
