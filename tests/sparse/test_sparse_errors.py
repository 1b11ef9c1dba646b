"""What goes wrong with sparse nodes is told with a code, on the line of the program that did it."""

import re

import pytest
from sparse_kernels import count_of

import octants as oc

pytestmark = pytest.mark.host_access


@pytest.fixture(autouse=True)
def on_every_device(arch):
    """No test of this file leaves a device out."""


def told(error, code: str, line: str):
    """The message has a code, and shows a line of this file."""
    assert re.search(rf"error\[{code}\]", str(error.value)), str(error.value)
    assert line in str(error.value) and "test_sparse_errors.py:" in str(error.value)


def run(kernel, *arguments):
    kernel(*arguments)
    oc.sync()


def lists(extent=4, chunk=2):
    x = oc.field(oc.i32)
    node = oc.root.dense(oc.i, 2).dynamic(oc.j, extent, chunk_size=chunk)
    node.place(x)
    return x, node


def blocks(extent=4):
    x = oc.field(oc.f32)
    node = oc.root.pointer(oc.i, extent)
    node.dense(oc.i, 4).place(x)
    return x, node


@pytest.mark.parametrize("chunk", [1, 3, 4])
def test_a_full_list_refuses_an_element_and_keeps_the_others(chunk):
    x, node = lists(extent=4, chunk=chunk)

    @oc.kernel
    def fill(count: oc.i32):
        for n in range(count):
            oc.append(node, [1], n + 1)

    with pytest.raises(RuntimeError) as error:
        run(fill, 9)
    told(error, "OC0906", "oc.append(node, [1], n + 1)")

    @oc.kernel
    def length() -> oc.i32:
        return oc.length(node, [1])

    assert length() == 4 and (x.to_numpy()[1] > 0).all() and not x.to_numpy()[0].any()
    node.deactivate_all()
    run(fill, 4)
    assert sorted(x.to_numpy()[1].tolist()) == [1, 2, 3, 4]


def test_operations_that_a_node_does_not_have():
    x, node = blocks()
    _, list_node = lists()

    def active():
        oc.is_active(list_node, [0])

    def append():
        oc.append(node, [0], 1)

    def length():
        oc.length(node, [0])

    def activate():
        oc.activate(x.parent(), [0])

    def few():
        oc.activate(node, [0, 1])

    def many():
        oc.append(list_node, [0], oc.Vector([1, 2]))

    for function, code, line in [
        (active, "OC0412", "oc.is_active(list_node, [0])"),
        (append, "OC0412", "oc.append(node, [0], 1)"),
        (length, "OC0412", "oc.length(node, [0])"),
        (activate, "OC0412", "oc.activate(x.parent(), [0])"),
        (few, "OC0", "oc.activate(node, [0, 1])"),
        (many, "OC0", "oc.append(list_node, [0], oc.Vector([1, 2]))"),
    ]:
        with pytest.raises(oc.OctantsCompilationError) as error:
            oc.kernel(function)()
        told(error, code + (r"\d\d\d" if code == "OC0" else ""), line)


def test_indices_outside_are_told_in_debug_mode(arch):
    oc.init(arch=getattr(oc, arch), debug=True, log_level="error")
    x, node = blocks()
    y, list_node = lists()

    @oc.kernel
    def activate(i: oc.i32):
        oc.activate(node, [i])

    @oc.kernel
    def ask(i: oc.i32) -> oc.i32:
        return oc.is_active(node, [i])

    @oc.kernel
    def give_up(i: oc.i32):
        oc.deactivate(node, [i])

    @oc.kernel
    def write(i: oc.i32, j: oc.i32):
        y[i, j] = 1

    @oc.kernel
    def append(i: oc.i32):
        oc.append(list_node, [i], 1)

    @oc.kernel
    def named(i: oc.i32):
        y[i].append(1)

    run(activate, 3)
    for kernel, arguments, line in [
        (activate, (4,), "oc.activate(node, [i])"),
        (activate, (-1,), "oc.activate(node, [i])"),
        (ask, (9,), "return oc.is_active(node, [i])"),
        (give_up, (4,), "oc.deactivate(node, [i])"),
        (write, (0, 4), "y[i, j] = 1"),
        (append, (2,), "oc.append(list_node, [i], 1)"),
        (append, (-1,), "oc.append(list_node, [i], 1)"),
        (named, (2,), "y[i].append(1)"),
        (named, (-1,), "y[i].append(1)"),
    ]:
        with pytest.raises(AssertionError, match="Out of bound access") as error:
            run(kernel, *arguments)
        assert line in str(error.value)
    assert ask(3) == 1 and not y.to_numpy().any()


def test_a_promise_that_does_not_hold_is_told_in_debug_mode(arch):
    oc.init(arch=getattr(oc, arch), debug=True, log_level="error")
    x = oc.field(oc.i32, shape=8)

    @oc.kernel
    def shift(by: oc.i32):
        for i in range(2, 6):
            x[oc.assume_in_range(i + by, i, -1, 2)] = i

    run(shift, 1)
    with pytest.raises(AssertionError, match="assume_in_range") as error:
        run(shift, 2)
    assert "x[oc.assume_in_range(i + by, i, -1, 2)] = i" in str(error.value)


def test_a_loop_may_give_up_what_it_visits():
    x, node = blocks(16)

    @oc.kernel
    def fill():
        for i in range(64):
            x[i] = i

    @oc.kernel
    def drop() -> oc.i32:
        seen = 0
        for i in x:
            seen += 1
            if i % 4 == 3:
                oc.deactivate(node, i // 4)
        return seen

    run(fill)
    # A cell that is given up is zero at once, and elements of it that come later are left out.
    assert 16 <= drop() <= 64
    assert not x.to_numpy().any() and oc.sparse.usage(x) == 0


@pytest.mark.parametrize("what", [3, None, "x"])
def test_usage_of_what_is_no_field(what):
    oc.init(arch=oc.cpu, log_level="error")
    with pytest.raises(oc.OctantsTypeError, match="takes a field, not"):
        oc.sparse.usage(what)
    assert oc.sparse.usage(oc.tensor(oc.f32, 4, backend=oc.Backend.FIELD)) == 1


def test_what_is_wrong_is_refused():
    x = oc.field(oc.i32)
    lists = oc.root.dense(oc.i, 2).dynamic(oc.j, 4, chunk_size=2)
    lists.place(x)
    y = oc.field(oc.f32)
    blocks = oc.root.pointer(oc.i, 4)
    blocks.dense(oc.i, 4).place(y)

    @oc.kernel
    def overfull():
        for _ in range(1):
            for n in range(6):
                oc.append(lists, [1], n)

    with pytest.raises(RuntimeError, match="append to a full list: it has room for 4"):
        overfull()
        oc.sync()
    assert x.to_numpy()[1].tolist() == [0, 1, 2, 3]

    def use(function):
        oc.kernel(function)()

    def active():
        oc.is_active(lists, [1])

    def appended():
        oc.append(blocks, [1], 2)

    def long():
        oc.length(blocks, [1])

    def dense():
        oc.activate(y.parent(), [1])

    for function, kinds in [(active, "pointer, hash or bitmasked"), (appended, "dynamic"), (long, "dynamic")]:
        with pytest.raises(oc.OctantsTypeError, match=f"only works on {kinds} nodes"):
            use(function)
    with pytest.raises(oc.OctantsTypeError, match="sparse nodes"):
        use(dense)
    builder = oc.FieldsBuilder()
    for wrong, message in [
        (lambda: builder.dynamic(oc.ij, 8), "exactly one axis"),
        (lambda: builder.dynamic(oc.i, 8).pointer(oc.j, 4), "cannot lie below a dynamic one"),
        (lambda: builder.dynamic(oc.i, 8).dense(oc.i, 4), "cannot be cut again"),
        (lambda: builder.dense(oc.i, 8).dynamic(oc.i, 4), "standalone"),
        (lambda: builder.dynamic(oc.i, 8, chunk_size=0), "at least one"),
        (lambda: builder.pointer(oc.i, 0), "positive"),
    ]:
        with pytest.raises((oc.OctantsRuntimeError, ValueError), match=message):
            wrong()
    with pytest.raises(AttributeError):
        builder.hash(oc.i, 4)


def test_a_tree_that_is_gone_is_refused():
    builder = oc.FieldsBuilder()
    x = oc.field(oc.f32)
    blocks = builder.pointer(oc.i, 4)
    blocks.dense(oc.i, 4).place(x)
    tree = builder.finalize()

    @oc.kernel
    def write():
        x[3] = 1.0

    @oc.kernel
    def activate():
        oc.activate(blocks, [1])

    write()
    activate()
    tree.destroy()
    for use in (write, activate, lambda: x[3], lambda: x.to_numpy(), blocks.deactivate_all):
        with pytest.raises(RuntimeError, match="destroyed"):
            use()


def test_an_index_outside_is_told_in_debug_mode(arch):
    oc.init(arch=getattr(oc, arch), debug=True)
    x = oc.field(oc.f32)
    blocks = oc.root.pointer(oc.i, 4)
    blocks.dense(oc.i, 4).place(x)

    @oc.kernel
    def write(i: oc.i32):
        x[i] = 1.0

    @oc.kernel
    def activate(i: oc.i32):
        oc.activate(blocks, [i])

    write(15)
    activate(3)
    for use, index in [(write, 16), (activate, 4), (activate, -1)]:
        with pytest.raises(AssertionError, match="Out of bound access"):
            use(index)
            oc.sync()
    with pytest.raises(AssertionError):
        x[16]
    assert count_of(x) == 4
