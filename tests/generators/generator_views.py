"""Views of arrays, made inside kernels with bounds that are known only there."""

from __future__ import annotations

from generator_expressions import Scope
from generator_structs import Structs


class Views(Structs):
    """Statements that make views, which are then read like arrays."""

    def __init__(self, seed: int):
        super().__init__(seed)
        #: Names that are views already: they can be sliced.
        self.views: set[str] = set()
        #: Arrays that have no views.
        self.no_views: set[str] = set()
        self.special += [self.new_view, self.write_through_view]

    def new_view(self, scope: Scope, indent: int, _loops: list[str]) -> bool:
        """A part of an array: a power of two long, somewhere."""
        arrays = [
            (t, name, size)
            for t, found in scope.arrays.items()
            for name, size in found
            if size >= 4 and name not in self.no_views
        ]
        if not arrays:
            return False
        known = [found for found in arrays if found[1] in self.views]
        element, array, size = self.pick(*(known if known and self.random.random() < 0.5 else arrays))
        length = self.pick(1, 2, 4)
        # The last offset that fits is not a power of two: masks reach half of the array.
        begin = f"({self.integer('i32', scope, 1)} & {size // 2 - 1})" if length <= size // 2 else "0"
        name = self.fresh("w")
        if array not in self.views:
            self.emit(indent, f"{name} = oc.BufferView({array}, {begin}, {length})")
        elif self.random.random() < 0.5:
            self.emit(indent, f"{name} = {array}.subview({begin}, {length})")
        else:
            first = self.fresh("x")
            self.emit(indent, f"{first} = {begin}")
            self.emit(indent, f"{name} = {array}[{first}:{first} + {length}]")
        self.views.add(name)
        scope.arrays[element].append((name, length))
        if self.random.random() < 0.3:
            index = self.fresh("k")
            self.emit(indent, f"for {index} in range({self.pick(f'{name}.size', f'{name}.shape[0]')}):")
            self.body(scope, index, indent, ["for"])
        return True

    def write_through_view(self, scope: Scope, indent: int, _loops: list[str]) -> bool:
        """A view of the one element that is the iteration's own."""
        targets = [name for name in self.mine if name.startswith("o_") and name not in self.no_views]
        if not targets or "," in self.target:
            return False
        array, name = self.pick(*targets), self.fresh("w")
        part = (
            f"{array}.subview({self.target}, 1)" if array in self.views else f"oc.BufferView({array}, {self.target}, 1)"
        )
        self.emit(indent, f"{name} = {part}")
        self.emit(indent, f"{name}[0] = {self.settled(self.outputs[array][0], scope)}")
        return True
