"""Random trees of dense and sparse nodes against a model: what is addressable, what is active, what a loop visits."""

import itertools

import numpy as np
import pytest

import octants as oc

pytestmark = [pytest.mark.host_access]

AXES = {(0,): oc.i, (1,): oc.j, (0, 1): oc.ij}


@pytest.fixture(autouse=True)
def on_every_device(arch):
    """No test of this file leaves a device out."""


class Model:
    """What is active in a chain of nodes, and the elements below it."""

    def __init__(self, levels, rank):
        self.levels, self.rank = levels, rank
        #: How many elements of the leaf lie in a cell of each level, by axis.
        self.below = []
        sizes = [1] * rank
        for _, extents in reversed(levels):
            self.below.insert(0, tuple(sizes))
            sizes = [size * extents.get(axis, 1) for axis, size in enumerate(sizes)]
        self.shape = tuple(sizes)
        self.active = [set() for _ in levels]
        self.values = {}

    def cell(self, level, index):
        return tuple(i // below for i, below in zip(index, self.below[level], strict=True))

    def write(self, index, value):
        self.activate(len(self.levels) - 1, index)
        self.values[index] = value

    def activate(self, level, index):
        for above in range(level + 1):
            if self.levels[above][0] != "dense":
                self.active[above].add(self.cell(above, index))

    def deactivate(self, level, cell):
        if cell in self.active[level]:
            first = tuple(c * below for c, below in zip(cell, self.below[level], strict=True))
            within = lambda index: self.cell(level, index) == cell  # noqa: E731
            self.values = {index: value for index, value in self.values.items() if not within(index)}
            for lower in range(level, len(self.levels)):
                inside = lambda c, at=lower: within(tuple(x * b for x, b in zip(c, self.below[at], strict=True)))  # noqa: E731
                self.active[lower] = {c for c in self.active[lower] if not inside(c)}
            assert first is not None

    def is_visited(self, index):
        return all(
            kind == "dense" or self.cell(level, index) in self.active[level]
            for level, (kind, _) in enumerate(self.levels)
        )

    def visited(self):
        return {index for index in itertools.product(*map(range, self.shape)) if self.is_visited(index)}


def random_levels(rng, rank):
    levels = []
    for _ in range(rng.integers(1, 4)):
        kind = str(rng.choice(["dense", "pointer", "bitmasked"]))
        axes = [axis for axis in range(rank) if rank == 1 or rng.random() < 0.8] or [0]
        levels.append((kind, {axis: int(rng.choice([1, 2, 3, 4, 5])) for axis in axes}))
    cut = set().union(*(extents for _, extents in levels))
    if cut != set(range(rank)):
        levels.append(("dense", {axis: 2 for axis in range(rank) if axis not in cut}))
    if all(kind == "dense" for kind, _ in levels):
        levels[0] = ("pointer", levels[0][1])
    return levels


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.filterwarnings("ignore:axis")
def test_random_trees_are_what_a_model_says(seed):
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 3))
    model = Model(random_levels(rng, rank), rank)
    offset = tuple(int(n) for n in rng.integers(-3, 4, rank)) if rng.random() < 0.5 else (0,) * rank
    x, y, plain = oc.field(oc.f32), oc.field(oc.i32), oc.field(oc.i32)
    node, nodes = oc.root, []
    for kind, extents in model.levels:
        node = getattr(node, kind)(AXES[tuple(extents)], list(extents.values()))
        nodes.append(node)
    node.place(x, offset=offset)
    node.place(y, offset=offset)
    oc.root.dense(oc.i, 3).place(plain)
    plain.fill(7)
    assert x.shape == model.shape
    seen = oc.field(oc.i32, shape=model.shape)
    wrong = oc.field(oc.i32, shape=())

    @oc.kernel
    def write(index: oc.types.ndarray(oc.i32, 2), values: oc.types.ndarray(oc.f32, 1)):
        for n in range(values.shape[0]):
            at = oc.Vector([index[n, k] for k in oc.static(range(rank))])
            x[at] = values[n]
            y[at] += 1

    @oc.kernel
    def visit():
        for at in oc.grouped(x):
            seen[at - oc.Vector(offset)] += 1
            if y[at] < 0:
                wrong[None] += 1

    @oc.kernel
    def drop(node: oc.template(), cells: oc.types.ndarray(oc.i32, 2)):
        for n in range(cells.shape[0]):
            oc.deactivate(node, oc.Vector([cells[n, k] for k in oc.static(range(rank))]))

    @oc.kernel
    def active(node: oc.template(), out: oc.types.ndarray(oc.i32, 1), cells: oc.types.ndarray(oc.i32, 2)):
        for n in range(cells.shape[0]):
            out[n] = oc.is_active(node, oc.Vector([cells[n, k] for k in oc.static(range(rank))]))

    def compare():
        expected = np.zeros(model.shape, np.float32)
        for index, value in model.values.items():
            expected[index] = value
        assert np.array_equal(x.to_numpy(), expected)
        seen.fill(0)
        visit()
        counts = seen.to_numpy()
        visited = {index for index in itertools.product(*map(range, model.shape)) if counts[index]}
        assert visited == model.visited() and counts.max(initial=0) <= 1 and wrong[None] == 0
        for level, (kind, _) in enumerate(model.levels):
            if kind != "dense":
                shape = nodes[level].shape
                cells = np.array(list(itertools.product(*map(range, shape))), np.int32)
                if cells.shape[1] != rank:
                    continue
                out = np.zeros(len(cells), np.int32)
                active(nodes[level], out, cells)
                assert {tuple(map(int, cell)) for cell, on in zip(cells, out, strict=True) if on} == model.active[level]

    compare()
    for _ in range(3):
        flat = rng.choice(int(np.prod(model.shape)), min(6, int(np.prod(model.shape))), replace=False)
        index = np.array(np.unravel_index(flat, model.shape)).T.astype(np.int32)
        values = rng.integers(1, 100, len(flat)).astype(np.float32)
        write(np.ascontiguousarray(index + np.array(offset, np.int32)), values)
        for at, value in zip(index, values, strict=True):
            model.write(tuple(map(int, at)), float(value))
        compare()
        sparse = [level for level, (kind, _) in enumerate(model.levels) if kind != "dense"]
        level = int(rng.choice(sparse))
        if len(nodes[level].shape) == rank and model.active[level]:
            cells = sorted(model.active[level])[:: int(rng.integers(1, 3))]
            drop(nodes[level], np.array(cells, np.int32))
            for cell in cells:
                model.deactivate(level, cell)
            compare()
    nodes[0].deactivate_all()
    model.active = [set() for _ in model.levels]
    model.values = {}
    compare()
    assert plain.to_numpy().tolist() == [7, 7, 7]
