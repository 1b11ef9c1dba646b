"""Lists of dynamic nodes: appending, their lengths, and their methods."""

import numpy as np
import pytest
from sparse_kernels import count_of

import octants as oc

pytestmark = [pytest.mark.host_access]


@pytest.fixture(autouse=True)
def on_every_device(arch):
    """No test of this file leaves a device out."""


def test_lists_grow_at_their_end_and_keep_their_elements():
    x, v = oc.field(oc.i32), oc.Vector.field(2, oc.f32)
    lists = oc.root.pointer(oc.i, 8).dynamic(oc.j, 1000, chunk_size=8)
    lists.place(x)
    pairs = oc.root.dynamic(oc.i, 256, chunk_size=16)
    pairs.place(v)
    old = oc.field(oc.i32, shape=300)

    @oc.kernel
    def fill():
        for n in range(300):
            old[n] = oc.append(lists, n % 3, n)
        for n in range(100):
            oc.append(pairs, [], oc.Vector([n, 2.0 * n]))

    @oc.kernel
    def lengths(out: oc.types.ndarray(oc.i32, 1)):
        for i in range(8):
            out[i] = oc.length(lists, i)
        out[8] = oc.length(pairs, [])

    fill()
    out = np.zeros(9, np.int32)
    lengths(out)
    assert out.tolist() == [100, 100, 100, 0, 0, 0, 0, 0, 100]
    found = x.to_numpy()
    assert sorted(found[:3, :100].ravel().tolist()) == list(range(300)) and not found[3:].any()
    assert sorted(v.to_numpy()[:100, 1].tolist()) == [2.0 * n for n in range(100)]
    olds = old.to_numpy()
    assert all(sorted(olds[k::3].tolist()) == list(range(100)) for k in range(3))
    x[5, 20] = 9
    lengths(out)
    assert out[5] == 21 and x[5, 20] == 9 and x[5, 3] == 0
    assert count_of(x) == 321

    @oc.kernel
    def drop():
        for i in range(2):
            oc.deactivate(lists, i)

    drop()
    lengths(out)
    assert out[:3].tolist() == [0, 0, 100] and count_of(x) == 121


def test_a_list_of_values_is_appended_to_several_fields():
    a, b = oc.field(oc.i32), oc.field(oc.f32)
    lists = oc.root.dynamic(oc.i, 8)
    lists.place(a, b)

    @oc.kernel
    def fill():
        for i in range(3):
            oc.append(lists, [], [7, 2.5])
            oc.append(lists, [], (7, 2.5))

    fill()
    assert a.to_numpy().tolist() == [7] * 6 + [0] * 2
    assert b.to_numpy().tolist() == [2.5] * 6 + [0] * 2


def test_lists_have_methods():
    x = oc.field(oc.f32)
    oc.root.dense(oc.i, 4).dynamic(oc.j, 64).place(x)

    @oc.kernel
    def fill() -> oc.i32:
        total = 0
        for i in range(4):
            for n in range(i + 1):
                total += x[i].append(n)
        return total

    @oc.kernel
    def longest() -> oc.i32:
        most = 0
        for i in range(4):
            most = max(most, x[i].length())
        return most

    @oc.kernel
    def drop():
        for i in range(4):
            if i > 1:
                x[i].deactivate()

    assert fill() == 0 + 1 + 3 + 6
    assert longest() == 4
    drop()
    assert longest() == 2 and count_of(x) == 3


def test_a_field_that_is_one_list_is_appended_to_by_its_name():
    numbers, pairs = oc.field(oc.i32), oc.Vector.field(2, oc.f32)
    Edge = oc.types.struct(length=oc.f32, to=oc.math.vec2)
    edges, many = Edge.field(), oc.field(oc.i32)
    for field in (numbers, pairs, edges):
        oc.root.dynamic(oc.i, 64, chunk_size=8).place(field)
    oc.root.pointer(oc.i, 4).dynamic(oc.j, 8).place(many)

    @oc.kernel
    def refill(n: oc.i32) -> oc.types.vector(3, oc.i32):
        numbers.deactivate()
        pairs.deactivate()
        edges.deactivate()
        for i in range(n):
            numbers.append(i)
            pairs.append(oc.Vector([i, 2.0]))
            edges.append(Edge(length=i, to=oc.math.vec2(i, 1)))
        return oc.Vector([numbers.length(), pairs.length(), edges.length()])

    for n in (10, 4):
        assert refill(n).to_list() == [n] * 3
    assert sorted(numbers.to_numpy()[:5]) == [0, 0, 1, 2, 3]
    assert sorted(edges.length.to_numpy()[:4]) == [0, 1, 2, 3] and edges.to.to_numpy()[:5, 1].tolist() == [
        1,
        1,
        1,
        1,
        0,
    ]

    @oc.kernel
    def lists_of_lists():
        many.append(1)

    with pytest.raises(oc.OctantsCompilationError, match=r"\[OC0409\].*append"):
        lists_of_lists()


def test_lists_of_a_field_that_begins_elsewhere():
    x, y = oc.field(oc.i32), oc.field(oc.i32)
    oc.root.dense(oc.i, 4).dynamic(oc.j, 8).place(x, offset=(-2, 0))
    oc.root.pointer(oc.j, 4).dynamic(oc.i, 8).place(y, offset=(0, 5))

    @oc.kernel
    def fill():
        for i in range(4):
            for n in range(i + 1):
                x[i - 2].append(10 * i + n)
                y[i + 5].append(10 * i + n)

    @oc.kernel
    def lengths() -> oc.types.vector(2, oc.i32):
        return oc.Vector([x[1].length(), y[7].length()])

    fill()
    assert lengths().to_list() == [4, 3]
    assert x[1, 3] == 33 and x[-2, 0] == 0 and x[-1, 1] == 11 and y[2, 7] == 22
    assert np.array_equal(x.to_numpy(), y.to_numpy().T)
