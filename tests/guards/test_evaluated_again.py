"""What Python evaluates for a kernel is evaluated once for the first launch, and again for those that follow."""

import enum
import gc
import itertools
import os
import random
import signal
import time
import types
import weakref

import numpy as np
import pytest

import octants as oc

pytestmark = pytest.mark.no_device


@pytest.fixture(autouse=True)
def session():
    oc.init(arch=oc.cpu, log_level="error")


class Box:
    def __init__(self, x):
        self.x = x

    def __add__(self, other):
        return Box(self.x + other.x)

    def double(self):
        return self.x * 2


def impure(x):
    return x + time.daylight * 0


def twice(kernel, change):
    first = kernel()
    change()
    return [first, kernel()]


def adder(n):
    return lambda x: x + n


def incrementer():
    return lambda x: x + 1


def new_class():
    class New:
        v = 5

    return New


def ring():
    a, b = Box(3), Box(4)
    a.b, b.a = b, a
    return a


def new_pair():
    one = Box(7)
    return one, one


def test_closures_and_new_objects():
    box = Box(3)

    @oc.kernel
    def closure() -> oc.i32:
        return adder(3)(4)

    @oc.kernel
    def closure_on_value(x: oc.i32) -> oc.i32:
        return adder(3)(x)

    @oc.kernel
    def function() -> oc.i32:
        return incrementer()(3)

    @oc.kernel
    def operators() -> oc.i32:
        return (box + box).double()

    @oc.kernel
    def others() -> oc.i32:
        return new_class().v + 10 * ring().x + 100 * oc.static(new_pair())[0].x

    assert [closure(), closure()] == [7, 7]
    assert [closure_on_value(4), closure_on_value(5)] == [7, 8]
    assert [function(), function()] == [4, 4]
    assert twice(operators, lambda: setattr(box, "x", 5)) == [12, 20]
    assert [others(), others()] == [735, 735]
    # These are made anew, and are the same for the code.
    for kernel in (closure, function):
        assert len(kernel.compile_statistics()) == 1


counted = []


def count():
    counted.append(1)
    return len(counted)


def noise():
    return random.random()


def stamp():
    return time.time()


def grow(items):
    items.append(1)
    return len(items)


def test_functions_that_give_something_else_each_time():
    items = [1]

    @oc.kernel
    def counts() -> oc.i32:
        return count()

    @oc.kernel
    def rolls() -> oc.f64:
        return noise()

    @oc.kernel
    def clock() -> oc.f64:
        return stamp()

    @oc.kernel
    def grows() -> oc.i32:
        return grow(items)

    assert counts() == 1 and len(counted) == 1
    assert counts() == len(counted)
    assert 0 <= rolls() < 1 and 0 <= rolls() < 1
    assert clock() > 1e9
    assert grows() == len(items) and grows() == len(items)


def test_iterators_are_read_once():
    generator, numbers = (i for i in range(3)), itertools.count()
    pairs, texts = zip([1, 2], [3, 4], strict=True), map(int, ["1", "2"])
    boxes = map(Box, [1, 2])

    @oc.kernel
    def loop() -> oc.i32:
        s = 0
        for i in oc.static(generator):
            s += i
        for a, b in oc.static(pairs):
            s += 10 * a * b
        return s

    @oc.kernel
    def calls() -> oc.i32:
        return oc.static(sum(texts)) + 10 * oc.static(next(numbers))

    @oc.kernel
    def objects() -> oc.i32:
        s = 0
        for box in oc.static(boxes):
            s += impure(box.x)
        return s

    assert [loop(), loop()] == [113, 113]
    assert [calls(), calls()] == [3, 3]
    assert [objects(), objects()] == [3, 3]


def sum_of(boxes):
    s = 0
    for box in boxes:
        s += box.x
    return s


@oc.data_oriented
class Parts:
    def __init__(self):
        self.parts = [Box(3)]

    @oc.kernel
    def total(self) -> oc.i32:
        return sum_of(self.parts)

    @oc.kernel
    def count(self) -> oc.i32:
        return oc.static(len(self.parts))

    @oc.kernel
    def length(self) -> oc.i32:
        return length(self.parts)


def test_containers_of_objects():
    parts = Parts()
    assert twice(parts.total, lambda: setattr(parts.parts[0], "x", 8)) == [3, 8]
    assert twice(parts.count, lambda: parts.parts.append(Box(1))) == [1, 2]


def n_of(thing):
    return thing.n


class Config:
    n = 3


class Iterable(type):
    def __iter__(cls):
        return iter(cls.items)


class Registry(metaclass=Iterable):
    items = [1, 2]


def labelled():
    return 1


def n_of_labelled():
    return labelled.n


@pytest.mark.parametrize("kind", ["class", "module", "function", "field", "tuple", "list"])
def test_definitions_and_handles_have_attributes(kind):
    thing = {
        "class": Config,
        "module": types.ModuleType("user"),
        "function": labelled,
        "field": oc.field(oc.f32, ()),
        "tuple": Config,
        "list": Config,
    }[kind]
    thing.n = 3
    held = {"tuple": (thing,), "list": [thing]}.get(kind)

    @oc.kernel
    def direct() -> oc.i32:
        return n_of(thing)

    @oc.kernel
    def inside() -> oc.i32:
        return n_of(held[0])

    assert twice(direct if held is None else inside, lambda: setattr(thing, "n", 4)) == [3, 4]


def test_attributes_of_a_function_that_another_one_reads():
    labelled.n = 3

    @oc.kernel
    def read() -> oc.i32:
        return n_of_labelled()

    assert twice(read, lambda: setattr(labelled, "n", 4)) == [3, 4]


def test_loops_over_a_class():
    @oc.kernel
    def loop() -> oc.i32:
        s = 0
        for i in oc.static(Registry):
            s += i
        return s

    assert twice(loop, lambda: Registry.items.append(4)) == [3, 7]


scale = 2


class Mode(enum.Enum):
    A = 1
    B = [1, 2]

    @property
    def scaled(self):
        return self.value * scale

    def __add__(self, other):
        return self.value * scale + other


class Plain(enum.Enum):
    A = 1
    B = 2


def scaled(mode):
    return mode.scaled


def test_members_of_enums_have_methods():
    @oc.kernel
    def attribute() -> oc.i32:
        return Mode.A.scaled

    @oc.kernel
    def operator() -> oc.i32:
        return oc.static(Mode.A + 1)

    @oc.kernel
    def function() -> oc.i32:
        return scaled(Mode.A)

    @oc.kernel
    def value() -> oc.i32:
        return oc.static(len(Mode.B.value))

    @oc.kernel
    def own() -> oc.i32:
        return Plain.A.n + n_of(Plain.A)

    def rescale(to):
        global scale
        scale = to

    Plain.A.n = 3
    for kernel, results in [(attribute, [2, 5]), (operator, [3, 6]), (function, [2, 5])]:
        rescale(2)
        assert twice(kernel, lambda: rescale(5)) == results
    assert twice(value, lambda: Mode.B.value.append(3)) == [2, 3]
    assert twice(own, lambda: setattr(Plain.A, "n", 5)) == [6, 10]
    del Plain.A.n


calls = 0


def interrupted():
    global calls
    calls += 1
    if calls == 3:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
    return 7


def ended():
    global calls
    calls += 1
    if calls == 3:
        raise SystemExit(3)
    return 7


@pytest.mark.parametrize("function, error", [(interrupted, KeyboardInterrupt), (ended, SystemExit)])
def test_the_wish_to_end_is_handed_on(function, error):
    global calls
    calls = 0

    @oc.kernel
    def kernel() -> oc.i32:
        return function()

    assert [kernel(), kernel()] == [7, 7]
    with pytest.raises(error):
        kernel()
    assert kernel() == 7


def length(items):
    return impure(len(items))


def itself():
    items = []
    items.extend([items] * 8)
    return items


def test_containers_that_hold_each_other():
    chain = [[i] for i in range(30)]
    for i in range(29):
        chain[i] += [chain[i + 1], chain[i + 1]]
    knot = itself()

    @oc.kernel
    def lengths() -> oc.i32:
        return oc.static(len(chain[0])) + 10 * length(knot) + 100 * oc.static(len(itself()))

    @oc.kernel
    def deep() -> oc.i32:
        return oc.static(chain[0][1][0])

    parts = Parts()
    parts.parts = knot
    begin = time.perf_counter()
    assert [parts.length(), parts.length()] == [8, 8]
    assert [lengths(), lengths()] == [883, 883]
    assert [deep(), deep()] == [1, 1]
    knot.append(1)
    assert lengths() == 893
    chain[1][0] = 9
    assert deep() == 9
    assert time.perf_counter() - begin < 20


def test_code_for_values_that_do_not_return_is_dropped():
    box = Box(0)

    @oc.kernel
    def kernel() -> oc.i32:
        return n_of_box(box)

    for i in range(70):
        box.x = i
        assert kernel() == i
    assert len(kernel.compile_statistics()) <= 64


def n_of_box(box):
    return impure(box.x)


def test_arrays_that_functions_read():
    @oc.kernel
    def kernel() -> oc.f32:
        return first_of_numbers()

    assert twice(kernel, lambda: numbers.__setitem__(0, 5)) == [1, 5]


numbers = np.ones(3, np.float32)


def first_of_numbers():
    return numbers[0]


def first_in(path):
    return int(np.load(path)[0])


def test_files_that_functions_read(tmp_path):
    path = str(tmp_path / "x.npy")
    np.save(path, np.array([3]))

    @oc.kernel
    def kernel() -> oc.i32:
        return first_in(path)

    assert twice(kernel, lambda: np.save(path, np.array([9]))) == [3, 9]


class Scaled(np.ndarray):
    pass


def scale_of(array):
    return array.scale


def total_of(array):
    return float(array.sum())


def test_arrays_that_hold_more_than_elements():
    scaled, masked = np.zeros(2).view(Scaled), np.ma.array([1.0, 2.0, 3.0], mask=[0, 0, 0])
    scaled.scale = 3

    @oc.kernel
    def attribute() -> oc.i32:
        return scale_of(scaled) + scaled.scale

    @oc.kernel
    def total() -> oc.f64:
        return total_of(masked)

    assert twice(attribute, lambda: setattr(scaled, "scale", 5)) == [6, 10]
    assert twice(total, lambda: setattr(masked, "mask", [1, 0, 0])) == [6, 5]


def test_a_kernel_in_what_it_evaluates_is_collected():
    def make():
        box = Box(1)
        items = [box]

        @oc.kernel
        def kernel() -> oc.i32:
            return length(items)

        items.append(kernel)
        assert [kernel(), kernel()] == [2, 2]
        return weakref.ref(box)

    boxes = [make() for _ in range(3)]
    gc.collect()
    assert [box() for box in boxes] == [None] * 3
