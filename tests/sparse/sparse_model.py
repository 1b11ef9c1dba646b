"""Random trees of dense and sparse nodes, and a model in Python of what is active in them and what their elements are.

A tree is described by :class:`Node` and :class:`Leaf`; :class:`Model` says what each operation does to it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np

import octants as oc

#: Most elements of a field: each is looked at after each step.
MOST_ELEMENTS = 200

#: How elements are made: a name, the scalars that they have, and the type of each.
ELEMENTS = {
    "i32": (1, np.int32), "u8": (1, np.uint8), "i64": (1, np.int64), "f32": (1, np.float32), "f64": (1, np.float64),
    "vector": (3, np.float32), "matrix": (4, np.int16), "struct": (3, np.float64),
}  # fmt: skip


@dataclass(eq=False)
class Leaf:
    """A field: how its elements are made, and the index of its first one."""

    element: str
    origin: tuple[int, ...]
    parent: Node

    shape = property(lambda self: self.parent.shape)

    def made(self):
        if self.element == "vector":
            return oc.Vector.field(3, oc.f32)
        if self.element == "matrix":
            return oc.Matrix.field(2, 2, oc.i16)
        if self.element == "struct":
            return oc.types.struct(a=oc.f64, v=oc.types.vector(2, oc.f64)).field()
        return oc.field(getattr(oc, self.element))


@dataclass(eq=False)
class Node:
    kind: str
    #: How many cells each axis is cut into, the slowest to vary first.
    splits: dict[int, int]
    parent: Node | None
    chunk: int = 1
    nodes: list[Node] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)

    @property
    def path(self) -> list[Node]:
        """From below the root to this node."""
        return [*(self.parent.path if self.parent else ()), *((self,) if self.parent else ())]

    @property
    def axes(self) -> list[int]:
        return sorted({axis for node in self.path for axis in node.splits})

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(int(np.prod([node.splits.get(axis, 1) for node in self.path])) for axis in self.axes)

    @property
    def below(self) -> list[Node]:
        return [node for child in self.nodes for node in (child, *child.below)]

    @property
    def list_axis(self) -> int:
        """Of a dynamic node: which of its axes its lists are."""
        return self.axes.index(next(iter(self.splits)))

    @property
    def list_shape(self) -> tuple[int, ...]:
        return tuple(extent for at, extent in enumerate(self.shape) if at != self.list_axis)

    def all_leaves(self) -> list[Leaf]:
        return [*self.leaves, *(leaf for node in self.nodes for leaf in node.all_leaves())]

    def cell_of(self, lower: Node, index: tuple[int, ...]) -> tuple[int, ...]:
        """The cell of this node that a cell of one below it lies in."""
        within, upper = dict(zip(lower.axes, index, strict=True)), lower.path[len(self.path) :]
        return tuple(within[axis] // int(np.prod([node.splits.get(axis, 1) for node in upper])) for axis in self.axes)

    def list_of(self, index: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
        """Of a dynamic node: the list that an element is in, and where."""
        at = self.list_axis
        return (*index[:at], *index[at + 1 :]), index[at]

    def describe(self) -> str:
        """As a program would say it, for the message of a test that fails."""
        own = f"{self.kind}({self.splits}" + (f", chunk_size={self.chunk})" if self.kind == "dynamic" else ")")
        inside = [*(f"{leaf.element}@{leaf.origin}" for leaf in self.leaves), *(node.describe() for node in self.nodes)]
        return f"{own}[{', '.join(inside)}]"


def random_tree(pick) -> Node:
    """A tree with at least one field and one sparse node; ``pick(n)`` gives a number below ``n``."""
    root = Node("root", {}, None)
    for _ in range(1 + pick(2)):
        _grow(root, pick, 1 + pick(4))
    if all(node.kind == "dense" for node in root.below):
        root.nodes[0].kind = ("pointer", "bitmasked")[pick(2)]
    return root


def _grow(parent: Node, pick, depth: int) -> None:
    node = _random_node(parent, pick)
    parent.nodes.append(node)
    if depth > 1:
        for _ in range(1 + (pick(4) == 0)):
            _grow(node, pick, depth - 1)
    # A node without fields is of no use but above others.
    for _ in range(pick(3) if node.nodes else 1 + pick(2)):
        names = sorted(ELEMENTS)
        origin = tuple(pick(7) - 3 for _ in node.axes) if pick(2) else (0,) * len(node.axes)
        node.leaves.append(Leaf(names[pick(len(names))], origin, node))


def _random_node(parent: Node, pick) -> Node:
    lists = [node for node in parent.path if node.kind == "dynamic"]
    room = MOST_ELEMENTS // int(np.prod(parent.shape))
    free = [axis for axis in range(4) if axis not in parent.axes]
    kinds = ["dense"] if lists else ["dense", "pointer", "pointer", "bitmasked", *(["dynamic"] if free else [])]
    kind = kinds[pick(len(kinds))]
    if kind == "dynamic":
        extent = 1 + pick(max(1, min(room, 24)))
        return Node(kind, {free[pick(len(free))]: extent}, parent, chunk=1 + pick(5))
    taken = [axis for node in lists for axis in node.splits]
    axes = [axis for axis in (2, 0, 1) if axis not in taken]
    first = pick(len(axes))
    splits = {}
    for axis in (axes[first:] + axes[:first])[: 1 + pick(2)]:
        splits[axis] = 1 + pick(max(1, min(room, 5)))
        room //= splits[axis]
    return Node(kind, splits, parent)


class Model:
    """What is active, and what was written there."""

    def __init__(self, root: Node):
        self.root, self.nodes, self.leaves = root, root.below, root.all_leaves()
        #: Of pointer and bitmasked nodes: the cells that are active.
        self.active = {node: set() for node in self.nodes if node.kind in ("pointer", "bitmasked")}
        #: Of dynamic nodes: the lengths of lists.
        self.lengths = {node: {} for node in self.nodes if node.kind == "dynamic"}
        self.values = {leaf: {} for leaf in self.leaves}
        #: Of pointer nodes: how many slots were in use at once, with those that are given up within a task.
        self.slots = {node: 0 for node in self.nodes if node.kind == "pointer"}
        self._in_task: dict[Node, int] = {}
        self.begin_task()

    def begin_task(self) -> None:
        """Slots that were given up before are free."""
        self._in_task = {node: len(self.active[node]) for node in self.slots}

    # ---- cells ----------------------------------------------------------------------------------------------------------

    def is_there(self, node: Node, index: tuple[int, ...]) -> bool:
        for above in node.path:
            cell = above.cell_of(node, index)
            if above.kind == "dynamic":
                at, number = above.list_of(cell)
                if number >= self.lengths[above].get(at, 0):
                    return False
            elif above.kind != "dense" and cell not in self.active[above]:
                return False
        return True

    def visited(self, node: Node) -> list[tuple[int, ...]]:
        return [index for index in itertools.product(*map(range, node.shape)) if self.is_there(node, index)]

    def activate(self, node: Node, index: tuple[int, ...]) -> None:
        for above in node.path:
            cell = above.cell_of(node, index)
            if above.kind == "dynamic":
                at, number = above.list_of(cell)
                self.lengths[above][at] = max(self.lengths[above].get(at, 0), number + 1)
            elif above.kind != "dense" and cell not in self.active[above]:
                self.active[above].add(cell)
                if above.kind == "pointer":
                    self._in_task[above] += 1
                    self.slots[above] = max(self.slots[above], self._in_task[above])

    def deactivate(self, node: Node, index: tuple[int, ...]) -> None:
        """Of a dynamic node the index is that of a list."""
        if node.kind == "dynamic":
            self.lengths[node].pop(index, None)

            def inside(lower, other):
                return node.list_of(node.cell_of(lower, other))[0] == index
        else:
            self.active[node].discard(index)

            def inside(lower, other):
                return node.cell_of(lower, other) == index

        for lower in node.below:
            if lower in self.active:
                self.active[lower] = {cell for cell in self.active[lower] if not inside(lower, cell)}
            if lower in self.lengths:
                # A list lies in a cell of its parent.
                above = lower.parent
                gone = {at for at in self.lengths[lower] if above is node and at == index}
                if above is not node:
                    gone = {at for at in self.lengths[lower] if inside(above, at)}
                self.lengths[lower] = {at: n for at, n in self.lengths[lower].items() if at not in gone}
        for leaf in node.all_leaves():
            kept = {at: v for at, v in self.values[leaf].items() if not inside(leaf.parent, at)}
            self.values[leaf] = kept

    def deactivate_all(self, node: Node) -> None:
        """A dense node hands it on to what is below it."""
        if node.kind in ("dense", "root"):
            for child in node.nodes:
                self.deactivate_all(child)
            return
        for index in list(self.lengths[node] if node.kind == "dynamic" else self.active[node]):
            self.deactivate(node, index)

    # ---- elements -------------------------------------------------------------------------------------------------------

    def zero(self, leaf: Leaf) -> np.ndarray:
        count, dtype = ELEMENTS[leaf.element]
        return np.zeros(count, dtype)

    def write(self, leaf: Leaf, index: tuple[int, ...], value: int) -> None:
        self.activate(leaf.parent, index)
        self.values[leaf][index] = (np.arange(len(self.zero(leaf))) + value).astype(self.zero(leaf).dtype)

    def add(self, leaf: Leaf, index: tuple[int, ...], value: int) -> None:
        self.activate(leaf.parent, index)
        old = self.values[leaf].get(index, self.zero(leaf))
        self.values[leaf][index] = (old + np.array(value).astype(old.dtype)).astype(old.dtype)

    def elements(self, leaf: Leaf) -> np.ndarray:
        found = np.zeros((*leaf.shape, len(self.zero(leaf))), self.zero(leaf).dtype)
        for index, value in self.values[leaf].items():
            found[index] = value
        return found
