"""What is active in sparse fields and what is in lists, for programs that run as plain Python."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from generator_types import SCALARS

#: How many lists there are.
LISTS = 4


class Activity:
    """Which cells of the two nodes above a field's elements are there."""

    def __init__(self, kinds: tuple[str, str], shape: tuple[int, ...], blocks: tuple[int, ...], grain: int = 1):
        self.kinds, self.shape = kinds, shape
        #: How many elements a cell of the inner node has, along the only axis if there are several.
        self.grain = grain
        self.inner = tuple(extent // block for extent, block in zip(shape, blocks, strict=True))
        self.active: tuple[set, set] = (set(), set())
        #: The elements of the fields that lie there.
        self.data: list[np.ndarray] = []

    def cell(self, level: int, index: tuple[int, ...]) -> tuple[int, ...]:
        return index if level else tuple(i // extent for i, extent in zip(index, self.inner, strict=True))

    def first(self, level: int, cell: tuple[int, ...]) -> tuple[int, ...]:
        return cell if level else tuple(i * extent for i, extent in zip(cell, self.inner, strict=True))

    def activate(self, level: int, cell: tuple[int, ...]) -> None:
        index = self.first(level, cell)
        for above in range(level + 1):
            if self.kinds[above] != "dense":
                self.active[above].add(self.cell(above, index))

    def is_there(self, level: int, cell: tuple[int, ...]) -> bool:
        index = self.first(level, cell)
        return all(self.kinds[n] == "dense" or self.cell(n, index) in self.active[n] for n in range(level + 1))

    def deactivate(self, level: int, cell: tuple[int, ...]) -> None:
        self.active[level].discard(cell)
        for index in itertools.product(*map(range, self.shape)):
            if self.cell(level, index) == cell:
                self.active[1].discard(index)
                for data in self.data:
                    data[self.elements(index)] = 0

    def elements(self, index: tuple[int, ...]):
        """Which elements lie in a cell of the inner node."""
        return index if self.grain == 1 else slice(index[0] * self.grain, (index[0] + 1) * self.grain)

    def activate_element(self, index: tuple[int, ...]) -> None:
        self.activate(1, tuple(i // self.grain for i in index))

    def visited_elements(self) -> list[tuple[int, ...]]:
        found = self.visited(1)
        return found if self.grain == 1 else [(i * self.grain + n,) for (i,) in found for n in range(self.grain)]

    def visited(self, level: int) -> list[tuple[int, ...]]:
        cells = dict.fromkeys(self.cell(level, index) for index in itertools.product(*map(range, self.shape)))
        return [cell for cell in cells if self.is_there(level, cell)]


@dataclass
class HostNode:
    """A node of a sparse field, as kernels see it."""

    activity: Activity
    level: int

    def __iter__(self):
        found = self.activity.visited(self.level)
        return iter([cell[0] for cell in found] if len(self.activity.shape) == 1 else found)

    def activate(self, cell) -> None:
        self.activity.activate(self.level, tuple(map(int, cell)))

    def deactivate(self, cell) -> None:
        self.activity.deactivate(self.level, tuple(map(int, cell)))

    def is_active(self, cell):
        return np.bool_(self.activity.is_there(self.level, tuple(map(int, cell))))


class HostLists:
    """A field of lists, and the node that they are."""

    def __init__(self, element: str):
        self.element, self.lists = element, [[] for _ in range(LISTS)]

    def parent(self):
        return self

    def __getitem__(self, index):
        return self.lists[int(index[0])][int(index[1])]

    def __iter__(self):
        return iter([(i, j) for i, one in enumerate(self.lists) for j in range(len(one))])

    def append(self, index, value):
        self.lists[int(index[0])].append(SCALARS[self.element](value))
        return np.int32(len(self.lists[int(index[0])]) - 1)

    def deactivate(self, index) -> None:
        self.lists[int(index[0])].clear()

    def length(self, index):
        return np.int32(len(self.lists[int(index[0])]))
