"""Parts of views with bounds of any value: negative, out of range, crossed, of other integer types; and clamped views."""

from __future__ import annotations

from generator_expressions import Scope
from generator_types import INTEGERS, Tensor
from generator_views import Views


class Slices(Views):
    """Statements that slice views at run time. How long a slice is, is known only there."""

    def __init__(self, seed: int):
        super().__init__(seed)
        #: Parameters whose indices are clamped.
        self.clamped: set[str] = set()
        self.special += [self.new_slice, self.new_slice, self.write_through_slice, self.clamped_read, self.clamped_read]

    def bound(self, scope: Scope) -> str:
        """One bound of a slice."""
        kind = self.random.randrange(9)
        if kind == 0:
            return ""
        if kind == 1:
            return str(self.random.randint(-40, 40))
        if kind == 2 and scope.indices:
            return self.pick(*scope.indices)
        number = self.integer("i32", scope, 1)
        if kind == 3:
            return number
        if kind == 4:
            return f"oc.cast({number}, oc.i64) * oc.cast({self.pick(1, -1, 65537)}, oc.i64)"
        if kind == 5:
            return f"oc.cast({number}, oc.{self.pick('u8', 'i8', 'u32', 'u64')})"
        return f"({number} & 31) - 16"

    def viewed(self, scope: Scope) -> tuple[str | Tensor, str] | None:
        """A view of a known array, and the type of its elements."""
        arrays = [
            (t, name, size) for t, found in scope.arrays.items() for name, size in found if name not in self.no_views
        ]
        if not arrays:
            return None
        element, name, size = self.pick(*arrays)
        return element, name if name in self.views else f"oc.BufferView({name}, 0, {size})"

    def cut(self, view: str, scope: Scope) -> str:
        """A slice of a view, or a slice of a slice."""
        bounds = [f"[{self.bound(scope)}:{self.bound(scope)}]" for _ in range(self.pick(1, 1, 2))]
        return view + "".join(bounds)

    def new_slice(self, scope: Scope, indent: int, _loops: list[str]) -> bool:
        found = self.viewed(scope)
        if not found:
            return False
        element, view = found
        part, value, at = self.fresh("w"), self.fresh("v"), self.fresh("k")
        self.emit(indent, f"{part} = {self.cut(view, scope)}")
        self.emit(indent, f"{value} = {self.settled(element, scope)}")
        self.emit(indent, f"for {at} in range({self.pick(f'{part}.size', f'{part}.shape[0]')}):")
        read = f"{part}[{at}]"
        if element in INTEGERS:
            self.emit(indent + 1, f"{value} = {value} ^ {read}")
        elif isinstance(element, Tensor):
            self.emit(indent + 1, f"{value} = oc.cast({read}, oc.{element.scalar})")
        else:
            self.emit(indent + 1, f"{value} = {read}")
        scope.add(element, value)
        return True

    def write_through_slice(self, scope: Scope, indent: int, _loops: list[str]) -> bool:
        """A slice that is the one element of the iteration."""
        targets = [name for name in self.mine if name.startswith("o_") and name not in self.no_views]
        if not targets or "," in self.target:
            return False
        array, i = self.pick(*targets), self.target
        element, (size, *_) = self.outputs[array]
        view = array if array in self.views else f"oc.BufferView({array}, 0, {size})"
        part, at = self.fresh("w"), self.fresh("k")
        cut = self.pick(
            f"[{i}:{i} + 1]", f"[{i} - {size}:][:1]", f"[{i}:][:1]", f"[:{i} + 1][-1:]", f"[-{size + 9}:][{i}:][:1]"
        )
        self.emit(indent, f"{part} = {view}{cut}")
        self.emit(indent, f"for {at} in range({part}.size):")
        self.emit(indent + 1, f"{part}[{at}] = {self.settled(element, scope)}")
        return True

    def clamped_read(self, scope: Scope, indent: int, _loops: list[str]) -> bool:
        """An element of a clamped view, or of a part of it, with an index of any value."""
        found = [(t, name) for t, arrays in scope.arrays.items() for name, _ in arrays if name in self.clamped]
        if not found:
            return False
        element, name = self.pick(*found)
        part = self.pick(name, self.cut(name, scope))
        index = self.integer("i32", scope, 1)
        if self.random.random() < 0.3:
            index = f"oc.cast({index}, oc.i64) * oc.cast(65537, oc.i64)"
        elif self.random.random() < 0.6:
            index = f"({index} & 31) - 16"
        value, read = self.fresh("v"), f"{part}[{index}]"
        if isinstance(element, Tensor):
            read = f"oc.cast({read}, oc.{element.scalar})"
        self.emit(indent, f"{value} = {read}")
        scope.add(element, value)
        return True
