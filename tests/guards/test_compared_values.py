"""What a kernel was compiled for is compared as a whole: bits of numbers, items and attributes of containers, each container once."""

import array
import collections
import copy
import functools
import time
import types

import numpy as np
import pytest

import octants as oc

pytestmark = [pytest.mark.no_device, pytest.mark.filterwarnings("ignore:.*calling the Python function:SyntaxWarning")]


@pytest.fixture(autouse=True)
def session():
    oc.init(arch=oc.cpu, log_level="error")


def is_negative(value) -> bool:
    return bool(np.signbit(np.asarray(value).real).any())


@oc.kernel
def sign(v: oc.template()) -> oc.i32:
    return oc.static(-1 if is_negative(v) else 1)


@pytest.mark.parametrize("make", [float, np.float32, np.float16, np.longdouble, complex, np.complex64])
def test_zeros_of_either_sign_are_different_numbers(make):
    assert [sign(make(v)) for v in (0.0, -0.0, 0.0)] == [1, -1, 1]


VECTOR = oc.Vector([0.0, 1.0])


@oc.kernel
def bits_of_vector() -> oc.i32:
    return oc.bit_cast(oc.f32(VECTOR[0]), oc.i32)


def test_entries_of_vectors_are_compared_by_their_bits():
    seen = []
    for first in (0.0, -0.0, float("nan"), float("nan"), 0.0):
        VECTOR[0] = first
        seen.append(bits_of_vector() & 0xFFFFFFFF)
    assert seen[:2] == [0, 0x80000000] and seen[4] == 0
    assert all(np.isnan(np.uint32(bits).view(np.float32)) for bits in seen[2:4])


class List(list):
    pass


class Dict(dict):
    pass


Named = collections.namedtuple("Named", "a b")  # noqa: PYI024
Other = collections.namedtuple("Other", "b a")  # noqa: PYI024


def read(c):
    return c.n


def first_named(c):
    return c.a


def missing(c):
    return c["none"]


def longest(c):
    return c.maxlen


def item_bytes(c):
    return c.itemsize


def item(c):
    return c["a"]


@oc.kernel
def reads(f: oc.template(), c: oc.template()) -> oc.i32:
    return f(c)


@oc.kernel
def size(c: oc.template()) -> oc.i32:
    return oc.static(len(c))


@pytest.mark.parametrize("make", [List, Dict])
def test_containers_of_derived_classes_are_their_attributes_too(make):
    a, b = make(), make()
    a.n, b.n = 1, 2
    assert [reads(read, a), reads(read, b), reads(read, a)] == [1, 2, 1]
    assert size(a) == 0
    a.append(7) if make is List else a.update(x=7)
    assert size(a) == 1


def test_what_else_a_container_keeps_is_compared():
    assert [reads(missing, collections.defaultdict(lambda n=n: n)) for n in (1, 2)] == [1, 2]
    assert [reads(item, types.MappingProxyType({"a": n})) for n in (1, 2)] == [1, 2]
    assert [reads(first_named, make(1, 2)) for make in (Named, Other)] == [1, 2]
    assert [reads(longest, collections.deque([1], n)) for n in (3, 4)] == [3, 4]
    assert [reads(item_bytes, array.array(code, [1])) for code in "bh"] == [1, 2]


CHAIN = [[n] for n in range(40)]
for before, after in zip(CHAIN, CHAIN[1:]):  # noqa: B905
    before += [after, after]
LOOPS = []
LOOPS.extend([LOOPS] * 4)


@oc.kernel
def shared() -> oc.i32:
    return oc.static(len(CHAIN[0])) + 10 * oc.static(depth(CHAIN)) + 1000 * oc.static(len(LOOPS))


def depth(chain):
    return len(chain[20])


def test_shared_containers_are_walked_once():
    begin = time.perf_counter()
    assert [shared(), shared()] == [4033, 4033]
    CHAIN[20].append(0)
    LOOPS.append(LOOPS)
    assert shared() == 5043
    assert time.perf_counter() - begin < 10


FACTOR = 2


@functools.wraps(np.sum)
def wrapped(values):
    return FACTOR * len(values)


@oc.kernel
def wraps() -> oc.i32:
    return wrapped((1, 2))


def test_a_wrapper_is_not_what_it_wraps(monkeypatch):
    assert wraps() == 4
    monkeypatch.setitem(globals(), "FACTOR", 3)
    assert wraps() == 6


PATH = ""


@oc.kernel
def loaded() -> oc.i32:
    return np.load(PATH) + from_file(PATH)


def from_file(path):
    return int(np.fromfile(path, dtype=np.int64)[-1])


def test_files_are_read_again(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "PATH", str(tmp_path / "number.npy"))
    for number in (3, 4):
        np.save(PATH, np.array(number))
        assert loaded() == 2 * number


class Owner:
    pass


def test_copies_keep_what_refers_to_what():
    a = oc.ndarray(oc.f32, (3,), needs_grad=True)
    a.owner = Owner()
    a.owner.array = a
    deep = copy.deepcopy(a)
    assert deep.owner is not a.owner and deep.owner.array is deep and deep.grad is not a.grad
    shallow = copy.copy(a)
    a.fill(5)
    a.grad.fill(6)
    assert shallow.owner is a.owner
    assert shallow[0] == 0 and shallow.grad[0] == 0 and deep[0] == 0 and deep.grad[0] == 0
