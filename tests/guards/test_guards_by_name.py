"""What a kernel was compiled for is told apart from what only says that it is the same: names of methods, classes with an equality of their own, orders of dicts."""

import collections
import enum
import functools
import types

import numpy as np
import pytest

import octants as oc

pytestmark = [pytest.mark.no_device, pytest.mark.filterwarnings("ignore:.*OC1002:SyntaxWarning")]


@pytest.fixture(autouse=True)
def session():
    oc.init(arch=oc.cpu, log_level="error")


def twice(kernel, expected):
    assert [kernel(), kernel()] == [expected(), expected()]


def helper(self):
    return self.n


class Base:
    run = helper
    go = lambda self: self.n  # noqa: E731

    def __init__(self):
        self.n = 1
        self.bound = self.get

    def get(self):
        return self.n + 40


@oc.data_oriented
class Methods(Base):
    def __init__(self):
        super().__init__()
        self.inner = Base()

    def total(self):
        return self.run() + 10 * self.go() + 100 * self.inner.run() + 1000 * self.inner.go() + 10000 * self.bound()

    @oc.kernel
    def kernel(self) -> oc.i32:
        return self.run() + 10 * self.go() + 100 * self.inner.run() + 1000 * self.inner.go() + 10000 * self.bound()


def test_methods_under_other_names_than_their_own(monkeypatch):
    methods = Methods()
    for change in (
        lambda: None,
        lambda: setattr(methods, "n", 2),
        lambda: setattr(methods.inner, "n", 3),
        lambda: monkeypatch.setattr(Base, "run", lambda self: 7),
        lambda: setattr(methods, "run", lambda: 4),
        lambda: setattr(methods.inner, "go", lambda: 5),
        lambda: monkeypatch.setattr(Methods, "go", lambda self: 6, raising=False),
        lambda: setattr(methods, "bound", methods.total.__func__.__get__(types.SimpleNamespace(
            run=lambda: 1, go=lambda: 0, inner=Base(), bound=lambda: 0))),
        lambda: setattr(methods, "bound", lambda: 9),
        lambda: setattr(methods, "inner", Base()),
        lambda: delattr(methods, "run"),
    ):  # fmt: skip
        change()
        twice(methods.kernel, methods.total)
        # A method of one object is not that of another.
        other = Methods()
        other.n = methods.n + 1
        twice(other.kernel, other.total)


class Items(list):
    pass


class Table(dict):
    pass


ITEMS, TABLE, COUNTS = Items([1, 2]), Table(a=1), collections.Counter("ab")
DEFAULTS = collections.defaultdict(int, a=1)
ORDERED = collections.OrderedDict(a=1, b=2, c=3)


@oc.kernel
def lengths() -> oc.i32:
    return len(ITEMS) + 10 * len(TABLE) + 100 * len(COUNTS) + 1000 * len(DEFAULTS) + 10000 * len(ORDERED)


@oc.kernel
def walked() -> oc.i32:
    a, b = ITEMS[0], ITEMS[1]
    v = oc.Vector(ITEMS)
    s = a * 10 + b + v[0]
    for item in oc.static(ITEMS):
        s = s * 3 + item
    for key in oc.static(TABLE):
        s = s * 3 + TABLE[key]
    for key in oc.static(ORDERED):
        s = s * 3 + ORDERED[key]
    return s


@oc.kernel
def of_argument(ordered: oc.template()) -> oc.i32:
    s = 0
    for key in oc.static(ordered):
        s = s * 3 + ordered[key]
    return s


def folded(values, s=0):
    for value in values:
        s = s * 3 + value
    return s


def test_containers_of_derived_classes_that_kernels_walk():
    for change in (
        lambda: None,
        lambda: ITEMS.__setitem__(0, 5),
        lambda: ITEMS.append(6),
        lambda: TABLE.update(z=4),
        lambda: COUNTS.update("c"),
        lambda: DEFAULTS["q"],
        lambda: ORDERED.move_to_end("a"),
        lambda: ORDERED.update(b=7),
        lambda: ORDERED.move_to_end("c", last=False),
        lambda: ORDERED.pop("b"),
    ):
        change()
        counts = [len(one) for one in (ITEMS, TABLE, COUNTS, DEFAULTS, ORDERED)]
        twice(lengths, lambda counts=counts: sum(n * 10**at for at, n in enumerate(counts)))
        begin = ITEMS[0] * 10 + ITEMS[1] + ITEMS[0]
        expected = folded(ORDERED.values(), folded(TABLE.values(), folded(ITEMS, begin)))
        twice(walked, lambda expected=expected: expected)
        twice(lambda: of_argument(ORDERED), lambda: folded(ORDERED.values()))


LONG, LONG_TABLE = list(range(5000)), dict.fromkeys(range(5000), 1)


@oc.kernel
def of_long() -> oc.i32:
    return len(LONG) + 10 * len(LONG_TABLE) + LONG[4000] + LONG_TABLE[4000]


def test_the_length_of_long_containers():
    for change in (
        lambda: None,
        lambda: LONG.append(1),
        lambda: LONG_TABLE.update(a=1),
        lambda: LONG.__setitem__(4000, 3),
        lambda: LONG_TABLE.__setitem__(4000, 9),
        LONG.pop,
    ):
        change()
        twice(of_long, lambda: len(LONG) + 10 * len(LONG_TABLE) + LONG[4000] + LONG_TABLE[4000])


class Same(int):
    __slots__ = ()

    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


class SameText(str):
    __slots__ = ("size",)

    def __eq__(self, other):
        return True

    __hash__ = str.__hash__


class SameMode(int, enum.Enum):
    A = 1
    B = 2

    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


def text(value, size):
    made = SameText(value)
    made.size = size
    return made


def test_values_that_say_that_they_are_equal():
    held = types.SimpleNamespace(n=Same(3), text=text("ab", 1), mode=SameMode.A, all=[Same(1), SameMode.A])

    @oc.kernel
    def kernel() -> oc.i32:
        s = oc.static(int(held.n)) + 10 * oc.static(len(held.text)) + 100 * held.text.size + 1000 * held.mode.value
        return s + 10000 * oc.static(int(held.all[0]) + held.all[1].value)

    def expected():
        s = int(held.n) + 10 * len(held.text) + 100 * held.text.size + 1000 * held.mode.value
        return s + 10000 * (int(held.all[0]) + held.all[1].value)

    for change in (
        lambda: None,
        lambda: setattr(held, "n", Same(5)),
        lambda: setattr(held, "text", text("abcd", 1)),
        lambda: setattr(held, "text", text("abcd", 2)),
        lambda: setattr(held.text, "size", 3),
        lambda: setattr(held, "mode", SameMode.B),
        lambda: held.all.__setitem__(0, Same(2)),
        lambda: held.all.__setitem__(1, SameMode.B),
    ):
        change()
        twice(kernel, expected)


def test_objects_of_numpy_that_change():
    rows = np.array([(1, 2.0), (3, 4.0)], dtype=[("a", "i4"), ("b", "f4")])
    grid = np.arange(6).reshape(2, 3)
    held = types.SimpleNamespace(row=rows[1], flat=grid.flat, polynomial=np.poly1d([1, 2, 3]))
    direct = rows[0]

    def given():
        return int(held.row["a"]) + 10 * int(held.flat[4]) + 100 * int(held.polynomial(2)) + 10000 * int(direct["a"])

    @oc.kernel
    def members() -> oc.i32:
        return int(held.row["a"]) + 10 * int(held.flat[4]) + 100 * int(held.polynomial(2)) + 10000 * int(direct["a"])

    @oc.kernel
    def called() -> oc.i32:
        return given()

    for change in (
        lambda: None,
        lambda: rows["a"].__setitem__(1, 9),
        lambda: grid.__setitem__((1, 1), 8),
        lambda: held.polynomial.coeffs.__setitem__(0, 4),
        lambda: rows.__setitem__(0, (7, 1.0)),
    ):
        change()
        twice(members, given)
        twice(called, given)
    assert len(members.compile_statistics()) <= 6

    @oc.kernel
    def fixed() -> oc.f64:
        return np.finfo(np.float32).bits + np.iinfo(np.int16).max + np.dtype("f4").itemsize + np.float64(0.5)

    assert [fixed() for _ in range(3)] == [32 + 32767 + 4 + 0.5] * 3
    assert len(fixed.compile_statistics()) == 1


@functools.singledispatch
def dispatched(value):
    return 1


def attempted():
    try:
        return attempted.n
    except AttributeError:
        return 0


def test_functions_that_are_told_more_later():
    @oc.kernel
    def kernel() -> oc.i32:
        return oc.static(dispatched(3)) + 10 * oc.static(attempted())

    def expected():
        return dispatched(3) + 10 * attempted()

    twice(kernel, expected)
    dispatched.register(int, lambda value: 7)
    twice(kernel, expected)
    attempted.n = 4
    twice(kernel, expected)
    attempted.n = 5
    twice(kernel, expected)
    del attempted.n
    twice(kernel, expected)
