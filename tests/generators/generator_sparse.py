"""Loops that change what is active in sparse fields, and lists."""

from __future__ import annotations

from generator_activity import LISTS
from generator_expressions import Scope
from generator_overlaps import Overlaps
from generator_reductions import Shared

#: How many elements a list may have.
LONGEST = 2048


class Sparse(Overlaps):
    """Writes loops that make and give up cells, that fill and read lists, and reads of what is active."""

    def __init__(self, seed: int):
        super().__init__(seed)
        #: The type of the elements of the lists ``li``, if there are any.
        self.list_element: str | None = None
        self.special += [self.activity_read, self.length_read] * 2

    def choose_lists(self) -> None:
        if self.fields and self.random.random() < 0.3:
            self.list_element = self.pick(*self.integers)

    def is_sparse(self, name: str) -> bool:
        return name in self.fields and bool(self.fields[name].levels)

    def sparse_lines(self) -> list[str]:
        """Sparse fields of one axis, whose extents are powers of two."""
        return [name for name in self.outputs if self.is_sparse(name) and len(self.outputs[name][1]) == 1]

    def node_of(self, name: str) -> tuple[str, int]:
        """A sparse node above a field, and how many cells it has."""
        how = self.fields[name]
        level = self.pick(*(level for level in (0, 1) if how.levels[level] != "dense"))
        return f"{name}.parent({2 - level})", self.cells_of(name)[0] if level else how.blocks[0]

    def cells_of(self, name: str) -> tuple[int, ...]:
        """How many cells the node has that a field is placed in."""
        return (self.inputs | self.outputs)[name][1]

    def activity_read(self, scope: Scope, indent: int, _loops: list[str]) -> bool:
        """Whether a cell is there that this loop does not make."""
        groups = {self.fields[name].group for name in self.mine if name in self.fields}
        free = [n for n in self.sparse_lines() if n.startswith("o_") and self.fields[n].group not in groups]
        if not free or not self.target:
            return False
        node, cells = self.node_of(self.pick(*free))
        value = self.fresh("v")
        self.emit(indent, f"{value} = oc.cast(oc.is_active({node}, [{self.subscript(cells, scope, 1)}]), oc.i32)")
        scope.add("i32", value)
        return True

    def length_read(self, scope: Scope, indent: int, _loops: list[str]) -> bool:
        if not self.list_element or not self.target:
            return False
        value = self.fresh("v")
        self.emit(indent, f"{value} = oc.length(li.parent(), [{self.subscript(LISTS, scope, 1)}])")
        scope.add("i32", value)
        return True

    # ---- loops ----------------------------------------------------------------------------------------------------------

    def sparse_part(self, scope: Scope, totals: list[Shared], base: int) -> bool:
        """A loop about what is active; whether there is something of that kind."""
        loops = [self.cell_loop, self.census_loop] if self.sparse_lines() else []
        loops += [self.append_loop, self.list_loop] if self.list_element else []
        if loops:
            self.pick(*loops)(scope, totals, base)
        return bool(loops)

    def own_scope(self, index: str) -> Scope:
        """What cannot change while cells come and go."""
        scope = Scope()
        scope.indices.append(index)
        scope.add("i32", "p", assignable=False)
        return scope

    def cell_loop(self, _scope: Scope, _totals: list[Shared], base: int) -> None:
        """Makes cells of a node or gives some up: of all, or of those that are there."""
        node, cells = self.node_of(self.pick(*self.sparse_lines()))
        i, verb = self.fresh("i"), self.pick("activate", "deactivate", "deactivate")
        self.emit(base - 1, f"for {i} in {self.pick(f'range({cells})', node)}:")
        with self.at_top_level():
            self.emit(base, f"if {self.condition(self.own_scope(i), 2)}:")
        self.emit(base + 1, f"oc.{verb}({node}, [{i}])")

    def census_loop(self, _scope: Scope, _totals: list[Shared], base: int) -> None:
        """Counts what is active."""
        lines = [name for name in self.sparse_lines() if self.outputs[name][1] == (self.size,) and name != "d_line"]
        if lines:
            i = self.fresh("i")
            self.emit(base - 1, f"for {i} in {self.pick(*lines)}:")
            self.emit(base, f"d_line[{i}] += {self.random.randint(1, 9)}")

    def append_loop(self, scope: Scope, _totals: list[Shared], base: int) -> None:
        """Values in any order; or lists that are emptied."""
        i, inner = self.fresh("i"), scope.inner()
        if self.random.random() < 0.2:
            self.emit(base - 1, f"for {i} in range({LISTS}):")
            self.emit(base, f"if {self.condition(self.own_scope(i), 2)}:")
            self.emit(base + 1, f"oc.deactivate(li.parent(), [{i}])")
            return
        inner.indices.append(i)
        self.emit(base - 1, f"for {i} in range({self.pick(self.size, 100)}):")
        value = self.settled(self.list_element, inner)
        self.emit(base, f"oc.append(li.parent(), [{self.subscript(LISTS, inner, 2)}], {value})")

    def list_loop(self, _scope: Scope, totals: list[Shared], base: int) -> None:
        """The elements of lists in any order."""
        i, j, value = self.fresh("i"), self.fresh("j"), self.fresh("v")
        inner = self.own_scope(i)
        self.emit(base - 1, f"for {i}, {j} in li:")
        self.emit(base, f"{value} = li[{i}, {j}]")
        inner.add(self.list_element, value)
        for _ in range(self.random.randint(1, 2)):
            self.update(self.pick(*totals, *self.bins), inner, base)


def made_lists(program: Sparse):
    """The field of lists on the device."""
    import octants as oc

    lists = oc.field(getattr(oc, program.list_element))
    node = oc.root.pointer(oc.i, LISTS) if program.seed % 2 else oc.root.dense(oc.i, LISTS)
    node.dynamic(oc.j, LONGEST, chunk_size=1 + program.seed % 7).place(lists)
    return lists
