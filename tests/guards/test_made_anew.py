"""Functions that make something new at each call: a kernel is compiled for what it uses of it, and nothing is kept that nobody else has."""

import collections
import dataclasses
import enum
import gc
import io
import os
import signal
import types
import warnings
import weakref

import pytest

import octants as oc

pytestmark = [pytest.mark.no_device, pytest.mark.filterwarnings("ignore:.*OC1002:SyntaxWarning")]


@pytest.fixture(autouse=True)
def session():
    oc.init(arch=oc.cpu, log_level="error")
    state.update(v=3, calls=0)


state = {"v": 3, "calls": 0}


class Plain:
    def __init__(self, **members):
        vars(self).update(members)

    def get(self):
        return self.v


def value():
    """Something that no instruction shows to be the same."""
    return state["v"]


def cyclic():
    items = [value()]
    items.append(items)
    return items


def cyclic_object():
    made = Plain(v=value())
    made.me = made
    return made


def nested():
    return Plain(inner=Plain(items=[Plain(v=value())]))


def deque():
    return collections.deque([Plain(), value()])


def objects():
    return {Plain() for _ in range(value())}


def generator():
    return (n for n in [value(), 1])


def module():
    made = types.ModuleType("made")
    made.v = value()
    return made


def method():
    return Plain(v=value()).get


def stream():
    return io.BytesIO(bytes(value()))


@oc.kernel
def of_cyclic() -> oc.i32:
    return oc.static(cyclic()[1][0])


@oc.kernel
def of_cyclic_object() -> oc.i32:
    return cyclic_object().me.v


@oc.kernel
def of_nested() -> oc.i32:
    return nested().inner.items[0].v


@oc.kernel
def of_deque() -> oc.i32:
    return oc.static(deque()[1])


@oc.kernel
def of_objects() -> oc.i32:
    return oc.static(len(objects()))


@oc.kernel
def of_generator() -> oc.i32:
    s = -1
    for n in oc.static(generator()):
        s += n
    return s


@oc.kernel
def of_module() -> oc.i32:
    return module().v


@oc.kernel
def of_method() -> oc.i32:
    return method()()


@oc.kernel
def of_stream() -> oc.i32:
    return oc.static(len(stream().getvalue()))


KERNELS = [
    of_cyclic,
    of_cyclic_object,
    of_nested,
    of_deque,
    of_objects,
    of_generator,
    of_module,
    of_method,
    of_stream,
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_new_objects_are_compared_by_what_is_used_of_them(kernel):
    for _ in range(3):
        for state["v"] in (3, 3, 5, 5):
            assert kernel() == state["v"]
    # Code for each of the values, and for each that of the object that was made first.
    assert len(kernel.compile_statistics()) <= 4


def new_class():
    class New:
        v = 5

    return New


def object_of_new_class():
    return new_class()()


def named_tuple():
    return collections.namedtuple("Pair", "v w")(5, 6)


def data_class():
    @dataclasses.dataclass
    class Data:
        v: int = 5

    return Data()


def member_of_enum():
    class New(enum.Enum):
        v = 5

    return New.v


@oc.kernel
def of_class() -> oc.i32:
    return new_class().v


@oc.kernel
def of_object() -> oc.i32:
    return object_of_new_class().v


@oc.kernel
def of_named_tuple() -> oc.i32:
    return named_tuple().v


@oc.kernel
def of_data_class() -> oc.i32:
    return data_class().v


@oc.kernel
def of_enum() -> oc.i32:
    return member_of_enum().value


@pytest.mark.parametrize("kernel", [of_class, of_object, of_named_tuple, of_data_class, of_enum], ids=str)
def test_new_classes_are_told_of(kernel):
    assert kernel() == 5
    with pytest.warns(UserWarning, match="OC1013") as told:
        assert kernel() == 5
    text = str(next(one.message for one in told if "OC1013" in str(one.message)))
    assert "new class at each call" in text and "test_made_anew.py" in text


def count():
    state["calls"] += 1
    return state["calls"]


def test_code_for_ever_new_values_is_bounded_and_told_of():
    @oc.kernel
    def kernel() -> oc.i32:
        return count()

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for launch in range(1, 70):
            assert kernel() == launch
            assert state["calls"] == launch
    told = [str(one.message) for one in told if "OC1013" in str(one.message)]
    assert told and "`count` keeps giving something else" in told[0]
    assert len(kernel.compile_statistics()) <= 64


def length(items):
    return len(items) + 0 * state["v"]


@oc.data_oriented
class Holding:
    def __init__(self):
        self.n = 3
        self.items, self.pair, self.names = [self], (self, 1), {"me": self}
        self.bound = self.get

    def get(self):
        return self.n

    @oc.kernel
    def of_list(self) -> oc.i32:
        return length(self.items)

    @oc.kernel
    def of_tuple(self) -> oc.i32:
        return length(self.pair)

    @oc.kernel
    def of_dict(self) -> oc.i32:
        return length(self.names)

    @oc.kernel
    def of_method(self) -> oc.i32:
        return self.bound()


@pytest.mark.parametrize("name", ["of_list", "of_tuple", "of_dict", "of_method"])
def test_an_object_that_its_members_lead_back_to_is_freed(name):
    holding = Holding()
    for _ in range(3):
        getattr(holding, name)()
    watched = weakref.ref(holding)
    del holding
    gc.collect()
    assert watched() is None


def test_a_list_that_replaces_an_equal_one_is_the_one_that_is_passed():
    holding = Holding()
    old = holding.items
    assert holding.of_list() == 1
    holding.items = [holding]
    old.append(1)
    assert holding.of_list() == 1
    holding.items.append(2)
    assert holding.of_list() == 2


class Slots:
    __slots__ = ("kernel",)


def test_a_kernel_behind_an_object_that_cannot_be_held_weakly_is_collected():
    def make():
        slots, items = Slots(), []

        @oc.kernel
        def kernel() -> oc.i32:
            return length(items)

        slots.kernel = kernel
        items += [slots, (slots, Plain())]
        assert [kernel(), kernel()] == [2, 2]
        return weakref.ref(items[1][1])

    made = [make() for _ in range(3)]
    gc.collect()
    assert [one() for one in made] == [None] * 3


def signalled(signum=None, frame=None):
    if signum is None:
        state["calls"] += 1
        os.kill(os.getpid(), signal.SIGUSR1)
        for _ in range(1000):
            pass
    return 7


def handlers(launch):
    class Callable:
        def __call__(self, signum, frame):
            launch()

    return {
        "function": lambda signum, frame: launch(),
        "rest": lambda *given: launch(),
        "object": Callable(),
    }


@pytest.mark.parametrize("kind", ["function", "rest", "object"])
def test_a_handler_launches_while_a_function_of_a_kernel_runs(kind):
    done, array = [], oc.ndarray(oc.i32, 4)

    @oc.kernel
    def inner(a: oc.types.ndarray(dtype=oc.i32, ndim=1)):
        for i in a:
            a[i] += 1

    def launch():
        inner(array)
        done.append(int(array.to_numpy()[0]))

    @oc.kernel
    def outer() -> oc.i32:
        return signalled()

    before = signal.signal(signal.SIGUSR1, handlers(launch)[kind])
    try:
        # While code is made, and while it is compared.
        assert [outer(), outer(), outer()] == [7, 7, 7]
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert done == [1, 2, 3]
    assert state["calls"] == 3


def test_a_function_of_a_kernel_still_launches_nothing():
    @oc.kernel
    def inner() -> oc.i32:
        return 1

    def launch():
        return inner() + state["v"]

    @oc.kernel
    def outer() -> oc.i32:
        return launch()

    with pytest.raises(oc.OctantsCompilationError, match="kernel"):
        outer()
