"""A launch evaluates once what its kernel evaluates once, however much code there is for the kernel, and also if code is made then."""

import types

import pytest

import octants as oc

pytestmark = [pytest.mark.no_device, pytest.mark.filterwarnings("ignore::SyntaxWarning")]


@pytest.fixture(autouse=True)
def session():
    oc.init(arch=oc.cpu, log_level="error")
    calls.clear()
    base[:] = [4, 5]


calls = []
base = []


def counted(period):
    calls.append("counted")
    return len(calls) % period


def listed():
    calls.append("listed")
    return list(base)


def grow(items):
    calls.append("grow")
    items.append(len(calls) % 5)
    items[0] += 10
    return len(calls) // 2 % 3


def stores():
    calls.append("stores")
    base[0] = len(calls) % 4
    return len(calls) % 3


def fails():
    calls.append("fails")
    if len(calls) % 2 == 0:
        raise ValueError("even")
    return len(calls)


def scaled(v):
    calls.append("scaled")
    return v * (len(calls) // 2)


def as_python(expected, kernel, launches, per_launch):
    """Each launch gives what Python gives for the same calls, and makes as many."""
    for launch in range(launches):
        begin = list(calls), list(base)
        python = expected()
        calls[:], base[:] = begin
        found = kernel()
        assert found == python, launch
        assert len(calls) - len(begin[0]) == per_launch, launch


@pytest.mark.parametrize("period", [1, 3, 40])
def test_a_function_that_gives_something_else_each_time(period):
    @oc.kernel
    def once() -> oc.i32:
        return counted(period)

    @oc.kernel
    def twice() -> oc.i32:
        return counted(period) * 100 + counted(period + 1)

    as_python(lambda: counted(period), once, 12, 1)
    as_python(lambda: counted(period) * 100 + counted(period + 1), twice, 12, 2)
    assert len(once.compile_statistics()) <= period


def test_what_is_changed_by_a_later_call_was_something_else_before():
    @oc.kernel
    def kernel() -> oc.i32:
        items = oc.static(listed())
        first = oc.static(items[0])
        count = oc.static(grow(items))
        return first * 1000 + count * 100 + oc.static(items[0]) + oc.static(len(items))

    def expected():
        items = listed()
        first = items[0]
        count = grow(items)
        return first * 1000 + count * 100 + items[0] + len(items)

    for launch in range(12):
        base[0] = launch % 3
        begin = list(calls)
        python = expected()
        calls[:] = begin
        assert kernel() == python or len(calls) > len(begin) + 2, launch


def test_what_a_call_stores_was_something_else_before():
    @oc.kernel
    def kernel() -> oc.i32:
        before = oc.static(base[0])
        given = stores()
        return before * 100 + given * 10 + base[0]

    def in_order():
        before, given = base[0], stores()
        return before * 100 + given * 10 + base[0]

    for launch in range(12):
        begin = len(calls), base[0]
        found = kernel()
        # Where it had to be called again, each value is that of the last call.
        is_repeated = len(calls) - begin[0] > 1
        count, before = (len(calls) - 1, (len(calls) - 1) % 4) if is_repeated else begin
        calls[:], base[0] = ["stores"] * count, before
        assert found == in_order(), launch


def test_a_call_that_raises():
    @oc.kernel
    def kernel() -> oc.i32:
        return fails()

    for launch in range(1, 9):
        if launch % 2 == 0:
            with pytest.raises(oc.OctantsCompilationError, match="ValueError: even"):
                kernel()
        else:
            assert kernel() == launch
        assert len(calls) == launch


def test_a_function_that_is_given_values_of_the_kernel():
    @oc.kernel
    def kernel(v: oc.i32) -> oc.i32:
        return scaled(v)

    for launch in range(8):
        before = len(calls)
        assert kernel(7) == 7 * (len(calls) // 2)
        # Once to find out that no code is for it, and once to make code.
        assert len(calls) - before <= 2, launch


def test_a_call_of_a_method_that_another_call_gave():
    class Box:
        def __init__(self, x):
            self.x = x

        def get(self):
            calls.append("get")
            return self.x

    def method():
        return Box(base[0]).get

    @oc.kernel
    def kernel() -> oc.i32:
        return method()()

    for value in (4, 4, 6, 4, 6):
        base[0] = value
        begin = len(calls)
        assert kernel() == value
        assert len(calls) == begin + 1


@oc.data_oriented
class Stencil:
    """Its ranges are told by a method, as those of grids are."""

    def __init__(self):
        self.n = 3

    def offsets(self):
        calls.append("offsets")
        return oc.ndrange(self.n, (1, self.n))

    def changed(self, offset):
        calls.append("changed")
        offset[0] += len(calls) % 3
        return offset

    @oc.kernel
    def sum(self) -> oc.i32:
        s = 0
        for offset in oc.static(oc.grouped(self.offsets())):
            for d in oc.static(range(2)):
                s += offset[d]
        return s

    @oc.kernel
    def sum_of_changed(self) -> oc.i32:
        s = 0
        for offset in oc.static(oc.grouped(self.offsets())):
            s += offset[1] * 10
            s += oc.static(self.changed(offset))[0]
            s += offset[0]
        return s


def test_what_follows_from_ranges_is_not_evaluated_again(monkeypatch):
    iterated = []
    iterate = oc.ndrange.__iter__
    monkeypatch.setattr(oc.ndrange, "__iter__", lambda self: iterated.append(1) or iterate(self))
    stencil = Stencil()
    for n, makes in [(3, 1), (3, 0), (3, 0), (4, 1), (4, 0), (3, 0)]:
        stencil.n = n
        iterated.clear()
        assert stencil.sum() == sum(i + j for i in range(n) for j in range(1, n))
        assert len(iterated) == makes, n


def test_what_was_given_to_a_function_is_evaluated_again():
    stencil = Stencil()
    for n in [3, 3, 3, 2, 3]:
        stencil.n = n
        calls.clear()
        expected, now = 0, 1
        for i in range(n):
            for j in range(1, n):
                now += 1
                expected += 10 * j + 2 * (i + now % 3)
        assert stencil.sum_of_changed() == expected
        assert len(calls) == now


@oc.data_oriented
class Ticking:
    def __init__(self):
        self.count = 0

    def tick(self):
        self.count += 1
        return self.count

    @oc.kernel
    def kernel(self) -> oc.i32:
        return self.count * 100 + self.tick()


def test_a_call_that_changes_a_member_that_the_kernel_reads_is_refused():
    ticking = Ticking()
    for _ in range(3):
        with pytest.raises(oc.OctantsRuntimeTypeError, match="`self.count` changed while"):
            ticking.kernel()


settings = types.ModuleType("settings")

#: The first integer that f32 does not have.
LONG = 16_777_217


def rekind():
    calls.append("rekind")
    settings.kind = oc.f64
    return 0


@oc.kernel
def kinds_often() -> oc.f64:
    s = oc.f64(0.0)
    for _ in oc.static(range(100)):
        s += oc.cast(LONG, settings.kind)
    return s


@oc.kernel
def kinds_around_a_call() -> oc.f64:
    before = oc.cast(oc.cast(LONG, settings.kind), oc.f64)
    after = oc.static(rekind()) + oc.cast(oc.cast(LONG, settings.kind), oc.f64)
    return after - before


def test_attributes_of_modules_are_those_of_their_place_in_the_text():
    for kind in (oc.f32, oc.f64, oc.f64, oc.f32):
        settings.kind = kind
        assert kinds_often() == 100 * (LONG - (kind is oc.f32))
    for kind in (oc.f32, oc.f64, oc.f32, oc.f32, oc.f64):
        settings.kind = kind
        assert kinds_around_a_call() == (kind is oc.f32)


@oc.data_oriented
class Members:
    """Numbers and arrays in no order of importance."""

    def __init__(self):
        self.x, self.second, self.first, self.y = (oc.ndarray(oc.f32, 3), 2.0, 5.0, oc.ndarray(oc.f32, 3))

    @oc.kernel
    def run(self):
        for i in self.x:
            self.x[i] = tenfold(self.first) + self.second
        for i in self.y:
            self.y[i] = self.first


GIVEN = []


def tenfold(value):
    GIVEN.append(value)
    return 10.0 * value


def test_a_launch_as_the_last_one_gives_a_function_the_same_members():
    members = Members()
    for number in range(6):
        GIVEN.clear()
        members.run()
        assert GIVEN == [5.0], number
        assert members.x[0] == 52.0
