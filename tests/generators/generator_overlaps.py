"""Arrays of numpy that are column-major, and parameters that reach the memory of others: transposed, or from another element on."""

from __future__ import annotations

import numpy as np
from generator_expressions import Scope
from generator_fields import Fields
from generator_types import Tensor


class Overlaps(Fields):
    """What is read through one parameter was written through another by an earlier loop."""

    def __init__(self, seed: int):
        super().__init__(seed)
        #: Arrays that are given column-major.
        self.column_major: list[str] = []
        #: Parameters that are another one transposed.
        self.transposed: dict[str, str] = {}
        #: Parameters that are another one from an element on.
        self.parts: dict[str, tuple[str, int]] = {}
        self.special += [self.transposed_read, self.part_read, self.write_through_part] * 2

    def choose_overlaps(self) -> None:
        r = self.random
        for name in ("grid", "d_grid"):
            if name not in self.fields and r.random() < 0.4:
                self.column_major.append(name)
        grid, (rows, columns) = self.outputs["grid"]
        if "grid" not in self.fields and not isinstance(grid, Tensor) and r.random() < 0.6:
            self.transposed["grid_t"] = "grid"
            self.outputs["grid_t"] = (grid, (columns, rows))
        bases = [n for n in self.outputs if n.startswith("o_") and n not in self.fields and n not in self.offsets]
        if bases and r.random() < 0.6:
            base, first = self.pick(*bases), r.randint(1, 3)
            element, (size,) = self.outputs[base]
            self.parts["over"] = (base, first)
            self.outputs["over"] = (element, (size - first,))
            self.no_views.add("over")

    def overlapping(self, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The arrays of a call with those that reach into others."""
        arrays |= {name: np.asfortranarray(arrays[name]) for name in self.column_major}
        arrays |= {name: arrays[of].swapaxes(0, 1) for name, of in self.transposed.items()}
        return arrays | {name: arrays[of][first:] for name, (of, first) in self.parts.items()}

    def readable_parts(self, scope: Scope) -> None:
        """Parameters that reach what earlier loops wrote and this one does not."""
        for name, (of, _) in self.parts.items():
            if of not in self.mine:
                element, (size,) = self.outputs[of]
                scope.arrays.setdefault(element, []).append((name, size // 2))

    def transposed_read(self, scope: Scope, indent: int, _loops: list[str]) -> bool:
        if not self.transposed or "grid" in self.mine or not self.target:
            return False
        element, _ = self.outputs["grid_t"]
        value = self.fresh("v")
        row, column = (self.integer("i32", scope, 1) for _ in range(2))
        self.emit(indent, f"{value} = grid_t[{row} & 1, {column} & 3]")
        scope.add(element, value)
        return True

    def part_read(self, scope: Scope, indent: int, _loops: list[str]) -> bool:
        if not self.parts or self.parts["over"][0] in self.mine or not self.target:
            return False
        element, _ = self.outputs["over"]
        value, read = self.fresh("v"), f"over[{self.integer('i32', scope, 1)} & 3]"
        if isinstance(element, Tensor):
            read = f"oc.cast({read}, oc.{element.scalar})"
        self.emit(indent, f"{value} = {read}")
        scope.add(element, value)
        return True

    def write_through_part(self, scope: Scope, indent: int, _loops: list[str]) -> bool:
        """The iteration's own element, through the parameter that begins behind the first ones."""
        if not self.parts or self.parts["over"][0] not in self.mine or "," in self.target:
            return False
        base, first = self.parts["over"]
        self.emit(indent, f"if {self.target} >= {first}:")
        self.emit(indent + 1, f"over[{self.target} - {first}] = {self.settled(self.outputs[base][0], scope)}")
        return True

    def transposed_place(self, name: str) -> str:
        """The iteration's own element, perhaps through the transposed array."""
        place = f"{name}[{self.target}]"
        if name != "grid" or not self.transposed or ", " not in self.target or self.random.random() < 0.5:
            return place
        i, j = self.target.split(", ")
        return f"grid_t[{j}, {i}]"
