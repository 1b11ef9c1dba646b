"""``with oc.stream_parallel():`` blocks: how many there may be, what may stand beside them, and how they are recognised."""

import importlib.util
import sys
import types

import numpy as np
import pytest

import octants as oc
from octants import stream_parallel as branch

pytestmark = pytest.mark.host_access

IntArray = oc.types.ndarray(dtype=oc.i32, ndim=1)


def test_blocks_made_by_static_loops_and_ifs(arch):
    @oc.kernel
    def k(a: IntArray, both: oc.template()):
        """Static code decides how many branches there are."""
        scale = oc.static(10)
        for b in oc.static(range(3)):
            with oc.stream_parallel():
                for i in range(4):
                    a[4 * b + i] = scale * b + i
        if oc.static(both):
            with oc.stream_parallel():
                a[12] = 1
        else:
            pass

    a = oc.ndarray(oc.i32, 13)
    k(a, False)
    assert a.to_numpy().tolist() == [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23, 0]
    k(a, True)
    assert a[12] == 1


def test_a_static_loop_may_be_left_from_a_block(arch):
    @oc.kernel
    def k(a: IntArray):
        for b in oc.static(range(4)):
            with oc.stream_parallel():
                a[b] = 1
                if oc.static(b == 0):
                    continue
                a[b] = 2
                if oc.static(b == 2):
                    break
                a[b] = 3

    a = oc.ndarray(oc.i32, 4)
    k(a)
    assert a.to_numpy().tolist() == [1, 3, 2, 0]


def test_what_may_stand_beside_blocks(arch, capfd):
    @oc.kernel
    def k(a: IntArray):
        """A docstring."""
        pass
        with oc.stream_parallel():
            a[0] = 1
        oc.static_assert(1 + 1 == 2, "of course")
        oc.static_print("compiling")
        "a string is a comment"
        ...
        with oc.stream_parallel():
            a[1] = 2
        pass

    a = oc.ndarray(oc.i32, 2)
    k(a)
    assert a.to_numpy().tolist() == [1, 2]
    assert "compiling" in capfd.readouterr().out


def test_empty_blocks_and_a_single_one(arch):
    @oc.kernel
    def empty(a: IntArray):
        with oc.stream_parallel():
            pass
        with oc.stream_parallel():
            """Nothing."""
        with oc.stream_parallel():
            for i in a:
                a[i] = i + 1
        with oc.stream_parallel():
            pass

    @oc.kernel
    def nothing():
        with oc.stream_parallel():
            pass

    a = oc.ndarray(oc.i32, 5)
    empty(a)
    nothing()
    assert a.to_numpy().tolist() == [1, 2, 3, 4, 5]


def test_many_branches(arch):
    count = 32

    @oc.kernel
    def k(a: IntArray):
        for b in oc.static(range(count)):
            with oc.stream_parallel():
                for i in range(8):
                    a[8 * b + i] += b

    a = oc.ndarray(oc.i32, 8 * count)
    for _ in range(3):
        k(a)
    assert (a.to_numpy() == 3 * np.repeat(np.arange(count), 8)).all()


def imported_again():
    """The package's module once more, as a second import path gives it: other objects with the same marks."""
    name = "octants._language_again"
    package = sys.modules["octants._language"]
    spec = importlib.util.spec_from_file_location(name, package.__file__, submodule_search_locations=package.__path__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Holder:
    block = staticmethod(oc.stream_parallel)


def test_blocks_are_recognised_by_object(arch):
    closure = oc.stream_parallel
    chain = types.SimpleNamespace(inner=types.SimpleNamespace(oc=oc))
    again = imported_again()
    assert again.stream_parallel is not oc.stream_parallel

    @oc.kernel
    def k(a: IntArray):
        with branch():
            a[0] = 1
        with closure():
            a[1] = 2
        with chain.inner.oc.stream_parallel():
            a[2] = 3
        with Holder.block():
            a[3] = 4
        with again.stream_parallel():
            a[4] = 5

    a = oc.ndarray(oc.i32, 5)
    k(a)
    assert a.to_numpy().tolist() == [1, 2, 3, 4, 5]


def test_methods_templates_and_dataclasses(arch):
    @oc.data_oriented
    class Pair:
        def __init__(self, n):
            self.n, self.x, self.y = n, oc.field(oc.i32, shape=n), oc.field(oc.i32, shape=n)

        @oc.kernel
        def step(self, add: oc.i32):
            with oc.stream_parallel():
                for i in self.x:
                    self.x[i] += add
            with oc.stream_parallel():
                for i in range(self.n):
                    self.y[i] -= add

    pair = Pair(6)
    for _ in range(3):
        pair.step(2)
    assert pair.x.to_numpy().tolist() == 6 * [6]
    assert pair.y.to_numpy().tolist() == 6 * [-6]


@pytest.mark.no_device
def test_on_the_host_it_does_nothing():
    with oc.stream_parallel() as value:
        assert value is None
    for arguments, keywords in [((1,), {}), ((), {"num_streams": 4}), ((123,), {"num_streams": 4})]:
        with pytest.raises(TypeError):
            oc.stream_parallel(*arguments, **keywords)


@pytest.mark.no_device
def test_messages_show_no_tree_and_no_positions_in_it():
    @oc.kernel
    def k(a: IntArray):
        with oc.stream_parallel():
            a[0] = 1
        a[1] = 2

    with pytest.raises(oc.OctantsSyntaxError) as caught:
        k(oc.ndarray(oc.i32, 2))
    text = str(caught.value)
    assert "all top-level statements" in text and "a[1] = 2" in text
    assert not any(word in text for word in ("ast.", "StmtKind", "Assign(", "index", "body"))
