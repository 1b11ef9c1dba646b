"""Random trees of fields against a model of the index algebra that knows nothing of the implementation.

The model walks the tree as the guide describes it: children of a cell one after the other, each on a multiple of its alignment, cells
of a node one after the other with the last axis fastest.
"""

import ctypes
import itertools
import random
import warnings
from dataclasses import dataclass, field

import numpy as np
import pytest

import octants as oc

pytestmark = pytest.mark.host_access

DTYPES = [oc.u1, oc.i8, oc.u16, oc.i32, oc.u64, oc.f16, oc.f32, oc.f64]


def scalar_bytes(dtype):
    return np.dtype(dtype.numpy_name).itemsize


@dataclass
class Leaf:
    """A field as the model sees it: scalars (``entries`` is 1) or vectors and matrices side by side."""

    field: oc.Field
    dtype: object
    entries: int
    offset: tuple
    parent: "Node"
    at: int = 0

    @property
    def bytes(self):
        return scalar_bytes(self.dtype) * self.entries

    @property
    def alignment(self):
        return scalar_bytes(self.dtype)


@dataclass
class Node:
    """Cuts of axes, and what lies in a cell."""

    parent: "Node | None" = None
    cuts: list = field(default_factory=list)
    children: list = field(default_factory=list)
    snode: object = None
    at: int = 0
    cell: int = 0
    alignment: int = 1

    def measure(self):
        """Sizes and offsets, from the leaves up."""
        end = 0
        for child in self.children:
            if isinstance(child, Node):
                child.measure()
            child.at = -(-end // child.alignment) * child.alignment
            end = child.at + child.bytes
            self.alignment = max(self.alignment, child.alignment)
        self.cell = -(-end // self.alignment) * self.alignment

    @property
    def bytes(self):
        return self.cell * int(np.prod([extent for _, extent in self.cuts], dtype=np.int64))

    def path(self):
        return [*(self.parent.path() if self.parent else []), self]

    def shape(self):
        extents = {}
        for node in self.path():
            for axis, extent in node.cuts:
                extents[axis] = extents.get(axis, 1) * extent
        return {axis: extents[axis] for axis in sorted(extents)}

    def address(self, index):
        """Where the cell with an index by axis begins."""
        left = self.shape()
        position = 0
        for node in self.path():
            position += node.at
            cell = 0
            for axis, extent in node.cuts:
                left[axis] //= extent
                cell = cell * extent + index[axis] // left[axis] % extent
            position += cell * node.cell
        return position


def random_tree(rng):
    """A tree placed by a builder, with its model and all leaves."""
    builder = oc.FieldsBuilder()
    root = Node(snode=builder.root)
    leaves = []

    def grow(node, depth, budget):
        for _ in range(rng.randint(1, 3)):
            if depth < 3 and rng.random() < 0.6:
                axes = rng.sample(range(4), rng.randint(1, 3))
                cuts = []
                left = budget
                for axis in axes:
                    extent = rng.choice([1, 2, 3, 4, 5, 7, 8, 33])
                    if extent <= left:
                        cuts.append((axis, extent))
                        left //= extent
                child = Node(parent=node, cuts=cuts)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    child.snode = node.snode.dense(oc.axes(*(a for a, _ in cuts)), [extent for _, extent in cuts])
                node.children.append(child)
                grow(child, depth + 1, left)
            else:
                place(node)
        if not node.children:
            place(node)

    def place(node):
        rank = len(node.shape())
        offset = tuple(rng.randint(-5, 5) for _ in range(rank)) if rng.random() < 0.5 else (0,) * rank
        for made, dtype, entries in random_field(rng):
            node.snode.place(made, offset=offset if any(offset) or rng.random() < 0.5 else None)
            leaf = Leaf(made, dtype, entries, offset, node)
            node.children.append(leaf)
            leaves.append(leaf)

    grow(root, 0, 300)
    tree = builder.finalize()
    root.measure()
    return tree, root, leaves


def random_field(rng):
    """A field and, for the model, its leaves in order."""
    dtype = rng.choice(DTYPES)
    kind = rng.randint(0, 3)
    if kind == 0:
        n = rng.randint(1, 4)
        return [(oc.Vector.field(n, dtype), dtype, n)]
    if kind == 1:
        n, m = rng.randint(1, 3), rng.randint(1, 3)
        return [(oc.Matrix.field(n, m, dtype), dtype, n * m)]
    if kind == 2:
        other = rng.choice(DTYPES)
        made = oc.Struct.field({"a": dtype, "v": oc.types.vector(3, other)})
        return [(made.a, dtype, 1), (made.v, other, 3)]
    return [(oc.field(dtype), dtype, 1)]


def indices(leaf):
    shape = leaf.parent.shape()
    for position in itertools.product(*(range(extent) for extent in shape.values())):
        yield position, dict(zip(shape, position, strict=True))


def raw(address, leaf):
    data = ctypes.string_at(address, leaf.bytes)
    return np.frombuffer(data, dtype=leaf.dtype.numpy_name)


def random_numbers(rng, leaf, shape):
    high = 2 if leaf.dtype is oc.u1 else 100
    return np.random.default_rng(rng.randrange(2**32)).integers(0, high, shape).astype(leaf.dtype.numpy_name)


@pytest.mark.host_devices("looks at addresses")
@pytest.mark.parametrize("seed", range(40))
def test_random_trees(seed):
    rng = random.Random(seed)
    tree, root, leaves = random_tree(rng)

    # Sizes, offsets and shapes are those of the model.
    pending = [root]
    while pending:
        node = pending.pop()
        if node.parent is not None:
            assert node.snode.shape == tuple(node.shape().values())
            assert (node.snode._cell_size_bytes, node.snode._offset_bytes_in_parent_cell) == (node.cell, node.at)
        pending += [child for child in node.children if isinstance(child, Node)]

    # All leaves agree on where the tree begins; no two elements overlap; none lies outside.
    bases = {
        leaf.field._addresses()[0] - leaf.parent.address(dict.fromkeys(leaf.parent.shape(), 0)) - leaf.at
        for leaf in leaves
    }
    assert len(bases) == 1
    base = bases.pop()
    taken = np.zeros(root.cell, dtype=bool)
    for leaf in leaves:
        assert leaf.field.shape == tuple(leaf.parent.shape().values())
        for _, index in indices(leaf):
            begin = leaf.parent.address(index) + leaf.at
            assert not taken[begin : begin + leaf.bytes].any() and begin + leaf.bytes <= root.cell
            taken[begin : begin + leaf.bytes] = True

    # Whole arrays go to the addresses that the model says, and come back.
    written = {}
    for leaf in leaves:
        numbers = random_numbers(rng, leaf, leaf.field.to_numpy().shape)
        leaf.field.from_numpy(numbers)
        written[id(leaf)] = numbers
    for leaf in leaves:
        numbers = written[id(leaf)]
        np.testing.assert_array_equal(leaf.field.to_numpy(), numbers)
        for position, index in indices(leaf):
            there = raw(base + leaf.parent.address(index) + leaf.at, leaf)
            np.testing.assert_array_equal(there, numbers[position].ravel())

    # Single elements go where arrays go, with the offset; what is filled is one field alone.
    for leaf in leaves:
        numbers = written[id(leaf)]
        for position, _ in rng.sample(list(indices(leaf)), min(5, numbers.size // leaf.entries)):
            logical = tuple(np.add(position, leaf.offset).tolist()) if position else None
            element = leaf.field[logical]
            found = element.to_numpy() if leaf.entries > 1 or isinstance(leaf.field, oc.MatrixField) else element
            np.testing.assert_array_equal(np.ravel(found), numbers[position].ravel())
            value = random_numbers(rng, leaf, numbers[position].shape)
            if isinstance(leaf.field, oc.MatrixField):
                value = value.reshape(leaf.field._element_shape)
            leaf.field[logical] = value if value.ndim else value.item()
            numbers[position] = value.reshape(numbers[position].shape)
    filled = rng.choice(leaves)
    filled.field.fill(1)
    written[id(filled)][...] = 1
    for leaf in leaves:
        np.testing.assert_array_equal(leaf.field.to_numpy(), written[id(leaf)])
    tree.destroy()


@pytest.mark.parametrize("seed", range(20))
def test_random_shapes_orders_and_offsets(seed):
    rng = random.Random(seed)
    rank = rng.randint(0, 4)
    shape = tuple(rng.choice([1, 2, 3, 5, 8, 40, 70][: 7 if rank < 3 else 5]) for _ in range(rank))
    letters = "ijkl"[:rank]
    order = "".join(rng.sample(letters, rank)) if rank else None
    offset = tuple(rng.randint(-9, 9) for _ in shape)
    layout = rng.choice(list(oc.Layout))
    dtype = rng.choice(DTYPES)
    v = oc.Vector.field(3, dtype, shape=shape, order=order, offset=offset, layout=layout)
    s = oc.Struct.field({"a": dtype, "b": oc.f64}, shape=shape, order=order, offset=offset, layout=layout)
    x = oc.field(dtype, shape=shape, order=order, offset=offset, needs_grad=not dtype.is_integral)
    high = 2 if dtype is oc.u1 else 100
    numbers = np.random.default_rng(seed).integers(0, high, (*shape, 3)).astype(dtype.numpy_name)
    v.from_numpy(numbers)
    s.from_numpy({"a": numbers[..., 0], "b": numbers[..., 1]})
    x.from_numpy(numbers[..., 2])
    np.testing.assert_array_equal(v.to_numpy(), numbers)
    np.testing.assert_array_equal(s.to_numpy()["a"], numbers[..., 0])
    np.testing.assert_array_equal(s.to_numpy()["b"], numbers[..., 1])
    np.testing.assert_array_equal(x.to_numpy(), numbers[..., 2])
    view = x.to_numpy(copy=None)
    np.testing.assert_array_equal(view, numbers[..., 2])
    if rank and oc.cfg.arch not in (oc.cuda, oc.remote):
        # It is the memory itself: the axis that is named last varies fastest in memory.
        nested = [shape[letters.index(letter)] for letter in order]
        steps = dict(zip(order, [int(np.prod(nested[n + 1 :])) for n in range(rank)], strict=True))
        expected = [steps[letter] * view.itemsize for letter in letters]
        assert all(
            found == step or extent == 1 for found, step, extent in zip(view.strides, expected, shape, strict=True)
        )
    last = tuple(first + extent - 1 for first, extent in zip(offset, shape, strict=True)) or None
    assert v[last].to_list() == numbers.reshape(-1, 3)[-1].tolist() and s[last].a == numbers.reshape(-1, 3)[-1][0]
    v.get_scalar_field(1).fill(1)
    numbers[..., 1] = 1
    np.testing.assert_array_equal(v.to_numpy(), numbers)


@oc.kernel
def visit(x: oc.template(), first: oc.template(), visits: oc.types.ndarray(dtype=oc.i32, ndim=1)):
    for I in oc.grouped(x):
        position = 0
        for axis in oc.static(range(len(x.shape))):
            position = position * x.shape[axis] + I[axis] - first[axis]
        visits[position] += 1
        x[I] = oc.cast(position, x.dtype)


@oc.kernel
def gather(x: oc.template(), first: oc.template(), found: oc.types.ndarray(dtype=oc.f64, ndim=1)):
    for k in found:
        left = k
        I = oc.Vector([0 for _ in oc.static(range(len(x.shape)))])
        for axis in oc.static(range(len(x.shape) - 1, -1, -1)):
            I[axis] = left % x.shape[axis] + first[axis]
            left //= x.shape[axis]
        found[k] = oc.cast(x[I], oc.f64)


@pytest.mark.parametrize("seed", range(100, 106))
def test_kernels_visit_the_shape_and_see_what_the_host_sees(arch, seed):
    rng = random.Random(seed)
    tree, _, leaves = random_tree(rng)
    for leaf in leaves:
        shape = leaf.field.shape
        if not shape:
            continue
        entry = leaf.field
        if isinstance(entry, oc.MatrixField):
            number = rng.randrange(leaf.entries)
            entry = entry.get_scalar_field(*((number,) if entry.ndim == 1 else divmod(number, entry.m)))
        count = int(np.prod(shape))
        visits = np.zeros(count, dtype=np.int32)
        visit(entry, leaf.offset, visits)
        assert (visits == 1).all()
        expected = np.arange(count).astype(leaf.dtype.numpy_name).reshape(shape)
        np.testing.assert_array_equal(entry.to_numpy(), expected)
        numbers = random_numbers(rng, leaf, shape)
        entry.from_numpy(numbers)
        found = np.zeros(count)
        gather(entry, leaf.offset, found)
        np.testing.assert_array_equal(found, numbers.ravel().astype(np.float64))
    tree.destroy()


def test_a_field_that_was_declared_and_not_placed_is_told_at_the_first_launch():
    placed = oc.field(oc.f32, 3)
    forgotten = oc.field(oc.f32, name="forgotten")

    @oc.kernel
    def k():
        placed[0] = 1

    with pytest.raises(RuntimeError, match="not placed: `forgotten`"):
        k()
    oc.root.dense(oc.i, 2).place(forgotten)
    k()
    assert placed[0] == 1 and forgotten[1] == 0


def test_a_field_that_was_declared_and_not_placed_is_told_at_the_first_access():
    x = oc.field(oc.f32)
    forgotten = [oc.Vector.field(2, oc.f32, name="v"), oc.field(oc.i32, name="n")]
    oc.root.dense(oc.i, 2).place(x)
    with pytest.raises(RuntimeError, match="not placed: .*`n`"):
        x[0] = 1
    oc.root.dense(oc.i, 2).place(*forgotten)
    x[0] = 1
    assert x[0] == 1


def test_a_field_that_the_program_dropped_need_not_be_placed():
    x = oc.field(oc.f32)
    oc.Vector.field(2, oc.f32)
    oc.root.dense(oc.i, 2).place(x)
    x[0] = 1
    assert x[0] == 1


def test_a_field_keeps_its_name(arch):
    x = oc.field(oc.f32, 3, name="pressure")
    v = oc.Vector.field(2, oc.f32, 3, name="velocity")
    assert (x._name, v._name) == ("pressure", "velocity")
    with pytest.raises(AssertionError, match="the field `pressure` has 1 axis"):
        x[1, 2]
    with pytest.raises(AssertionError, match="field `pressure`"):
        x[7]
    with pytest.raises(AssertionError, match="velocity"):
        v[7]
