"""Members of objects that may change: what they put into a launch is kept while they are the same objects, and never stale."""

import dataclasses
import gc
import random
import sys
import threading
import weakref

import numpy as np
import pytest

import octants as oc

Floats = oc.types.ndarray(dtype=oc.f32, ndim=1)
#: Launches after which everything that can be kept is.
SETTLED = 4


@dataclasses.dataclass
class Inner:
    x: Floats
    factor: oc.f32


@dataclasses.dataclass
class Outer:
    inner: Inner
    y: Floats
    n: oc.i32


@oc.kernel
def add(outer: Outer, more: oc.f32):
    for i in range(outer.n):
        outer.y[i] += outer.inner.x[i] * outer.inner.factor + more


def floats(value=0.0):
    array = oc.ndarray(oc.f32, 3)
    array.fill(value)
    return array


def made():
    return Outer(Inner(floats(1), 2.0), floats(), 3)


def settled(kernel, *arguments):
    for _ in range(SETTLED):
        kernel(*arguments)


def test_each_member_may_be_replaced_at_any_launch(arch):
    generator, outer, model = random.Random(4), made(), np.zeros(3)
    x, n, factor = 1.0, 3, 2.0
    for _ in range(300):
        changed = generator.randrange(12)
        if changed == 0:
            x = generator.randrange(4)
            outer.inner.x = floats(x)
        elif changed == 1:
            outer.inner.factor = factor = generator.choice([0.5, 2.0, 3, np.float32(1.5)])
        elif changed == 2:
            outer.n = n = generator.choice([0, 1, 3, True, np.int64(2)])
        elif changed == 3:
            outer.y, model = floats(), np.zeros(3)
        elif changed == 4:
            outer.inner = Inner(outer.inner.x, factor)
        elif changed == 5:
            outer.inner.__dict__ = dict(outer.inner.__dict__)
        elif changed == 6:
            outer = dataclasses.replace(outer)
        model[: int(n)] += x * float(factor) + 0.25
        add(outer, 0.25)
    assert outer.y.to_numpy().tolist() == model.tolist()


def test_what_does_not_fit_any_more_is_refused(arch):
    outer = made()
    settled(add, outer, 0.0)
    outer.inner.x = oc.ndarray(oc.f64, 3)
    with pytest.raises(ValueError, match="required"):
        add(outer, 0.0)
    outer.inner.x = floats(1)
    outer.n = 1.5
    with pytest.raises(TypeError):
        add(outer, 0.0)
    del outer.n
    with pytest.raises(AttributeError, match="n"):
        add(outer, 0.0)
    outer.n = 1
    add(outer, 1.0)
    assert outer.y[0] == 2 * SETTLED + 3


def test_a_replaced_array_is_given_back(arch):
    outer = made()
    settled(add, outer, 0.0)
    old = weakref.ref(outer.y)
    outer.y = floats()
    gc.collect()
    assert old() is None
    settled(add, outer, 0.0)
    whole = weakref.ref(outer)
    arrays = weakref.ref(outer.y), weakref.ref(outer.inner.x)
    del outer
    gc.collect()
    assert whole() is None and [array() for array in arrays] == [None, None]


def test_an_array_without_axes_is_read_as_a_number_at_each_launch(arch):
    """Frozen or not: what the object refers to is the same, what that holds is not."""

    @dataclasses.dataclass(frozen=True)
    class Frozen:
        y: Floats
        by: oc.f32

    @dataclasses.dataclass
    class Plain:
        y: Floats
        by: oc.f32

    @oc.kernel
    def frozen(m: Frozen):
        for i in m.y:
            m.y[i] += m.by

    @oc.kernel
    def plain(m: Plain):
        for i in m.y:
            m.y[i] += m.by

    for kernel, kind in (frozen, Frozen), (plain, Plain):
        by = np.array(1.0)
        m = kind(floats(), by)
        settled(kernel, m)
        by[()] = 10.0
        kernel(m)
        assert m.y[0] == SETTLED + 10


@oc.data_oriented
class Solver:
    shift = 100.0

    def __init__(self):
        self.x = floats()
        self.rate = 1.0
        self.twice = False
        self.names = ("a", "b")

    @oc.kernel
    def step(self):
        for i in self.x:
            self.x[i] += self.rate
            if oc.static(self.twice):
                self.x[i] += self.rate
            if oc.static(len(self.names) == 3):
                self.x[i] += 1000.0


class Other(Solver):
    pass


def test_members_of_a_class(arch):
    solver = Solver()
    settled(solver.step)
    solver.twice = True
    settled(solver.step)
    assert solver.x[0] == 3 * SETTLED
    solver.twice = False
    for n in range(5):
        solver.rate = float(n)
        solver.step()
    assert solver.x[0] == 3 * SETTLED + 10
    solver.names = ("a", "b", "c")
    solver.step()
    assert solver.x[0] == 3 * SETTLED + 1014
    solver.__class__ = Other
    solver.names = ()
    solver.step()
    assert solver.x[0] == 3 * SETTLED + 1018


def test_arrays_that_change_places_at_each_launch(arch):
    @oc.data_oriented
    class Pair:
        def __init__(self):
            self.now, self.next = floats(1), floats()

        @oc.kernel
        def double(self):
            for i in self.now:
                self.next[i] = 2 * self.now[i]

    pair = Pair()
    for _ in range(10):
        pair.double()
        pair.now, pair.next = pair.next, pair.now
    assert pair.now.to_numpy().tolist() == [1024] * 3


@pytest.mark.host_devices("a kernel that takes a while")
def test_an_array_that_is_replaced_while_a_kernel_runs_lives_until_it_is_over():
    @dataclasses.dataclass
    class Long:
        y: Floats
        rounds: oc.i32

    @oc.kernel
    def work(m: Long):
        for i in m.y:
            for n in range(m.rounds):
                m.y[i] = (m.y[i] * 3.0 + n) % 17.0

    m = Long(oc.ndarray(oc.f32, 1 << 16), 1)
    settled(work, m)
    m.rounds = 2000
    settled(work, m)
    stopped = threading.Event()

    def replace():
        while not stopped.is_set():
            m.y = oc.ndarray(oc.f32, 1 << 16)

    thread = threading.Thread(target=replace)
    thread.start()
    for _ in range(SETTLED):
        work(m)
    stopped.set()
    thread.join()
    work(m)
    assert np.isfinite(m.y.to_numpy()).all()


SCALE = 2


@oc.data_oriented
class Computed:
    def __init__(self):
        self.wide, self.deep, self.parts = True, 1, [3]
        self.y = oc.ndarray(oc.i32, 4)

    @property
    def axes(self):
        extra = int(self.wide) + 2 * self.deep
        return max(extra, 2) if self.deep < 9 else -extra

    @property
    def rows(self):
        return 2 * self.axes

    @property
    def scaled(self):
        return SCALE * self.deep

    @property
    def first(self):
        return self.parts[0]

    @oc.kernel
    def run(self):
        self.y[0] = self.axes
        self.y[1] = self.rows
        self.y[2] = self.scaled
        self.y[3] = self.first

    def expected(self):
        return [self.axes, self.rows, self.scaled, self.first]


def test_properties_follow_what_they_are_computed_from(arch, monkeypatch):
    generator, computed = random.Random(7), Computed()
    for _ in range(200):
        changed = generator.randrange(16)
        if changed == 0:
            computed.wide = not computed.wide
        elif changed == 1:
            computed.deep = generator.randrange(12)
        elif changed == 2:
            computed.parts[0] = generator.randrange(4)
        elif changed == 3:
            monkeypatch.setitem(globals(), "SCALE", generator.randrange(4))
        elif changed == 4:
            computed.__dict__ = dict(computed.__dict__)
        elif changed == 5:
            computed = Computed()
        computed.run()
        assert computed.y.to_numpy().tolist() == computed.expected()


def test_properties_that_are_replaced_are_asked_again():
    @oc.data_oriented
    class Patched(Computed):
        @property
        def axes(self):
            return 5

    computed = Patched()
    settled(computed.run)
    assert computed.y[0] == 5 and computed.y[1] == 10
    # As tools do that load a module again: the code of a function, or the property itself.
    Patched.axes.fget.__code__ = (lambda self: 6).__code__
    computed.run()
    assert computed.y[0] == 6 and computed.y[1] == 12
    Patched.axes = property(lambda self: 7)
    computed.run()
    assert computed.y[0] == 7 and computed.y[1] == 14


def test_builtins_that_are_replaced_are_asked_again(monkeypatch):
    computed = Computed()
    settled(computed.run)
    assert computed.y[0] == 3
    with monkeypatch.context() as patched:
        patched.setitem(globals(), "max", lambda a, b: 40 + b)
        computed.run()
        assert computed.y[0] == 42
    settled(computed.run)
    assert computed.y[0] == 3
    with monkeypatch.context() as patched:
        patched.setattr("builtins.max", lambda a, b: 50 + b)
        computed.run()
        assert computed.y[0] == 52
    computed.run()
    assert computed.y[0] == 3


def test_the_code_of_a_property_that_follows_from_members_alone_is_not_run():
    @oc.data_oriented
    class Fixed(Computed):
        # No launch of this kernel has seen another number, of which it would be told from then on.
        @oc.kernel
        def run(self):
            self.y[0] = self.axes + self.rows + self.scaled + self.first

    computed, ran = Fixed(), []
    settled(computed.run)
    sys.setprofile(lambda frame, event, _: event == "call" and ran.append(frame.f_code.co_name))
    try:
        computed.run()
    finally:
        sys.setprofile(None)
    assert sorted(name for name in ran if name in Computed.__dict__) == ["first", "scaled"]


@oc.data_oriented
class OnlyComputed:
    def __init__(self, n):
        self.n = n

    @property
    def twice(self):
        return 2 * self.n


class OtherComputed(OnlyComputed):
    @property
    def twice(self):
        return 20 * self.n


def test_objects_of_which_nothing_but_a_property_is_used(arch):
    y = oc.ndarray(oc.i32, 1)

    @oc.kernel
    def run(config: oc.template(), y: oc.types.ndarray(dtype=oc.i32, ndim=1)):
        y[0] = config.twice

    for config in [OnlyComputed(1)] * SETTLED + [OtherComputed(1), OnlyComputed(2), OnlyComputed(1)] * 3:
        run(config, y)
        assert y[0] == config.twice
