"""Loops without branches, which compilers take apart and vectorise: each iteration owns a few neighbouring elements.

Inside an iteration the order of loads and stores counts: indices may meet that look different, and two parameters may be one array.
"""

from __future__ import annotations

from generator_expressions import Scope
from generator_reductions import Reductions
from generator_types import INTEGERS, Tensor, scalar_of

#: How many elements an iteration owns.
OWN = 4


class Straight(Reductions):
    """Writes such loops over the arrays ``block`` and ``o_v``, and over what else is the same memory."""

    def straight_loop(self, scope: Scope, base: int) -> None:
        inner, i, size = scope.inner(), self.fresh("i"), self.size
        self.emit(base - 1, f"for {i} in {self.pick(f'range({size})', f'range(p & {size - 1})', f'range(1, {size})')}:")
        inner.indices.append(i)
        for name, (element, shape) in self.inputs.items():
            if shape == (size,):
                inner.add(element, f"{name}[{i}]", assignable=False)
        start = self.fresh("x")
        self.emit(base, f"{start} = {i} * {OWN}")
        for _ in range(self.random.randint(2, 6)):
            kind = self.random.randrange(5)
            if kind == 0:
                self.read_block(i, start, inner, base)
            elif kind < 3 and "o_v" in self.outputs:
                self.change_tensor(i, inner, base)
            else:
                self.change_block(i, start, inner, base)

    def own_index(self, i: str, start: str) -> str:
        """One of the elements that the iteration owns, in several ways to say it."""
        at = self.random.randrange(OWN)
        known = self.pick(f"{OWN} * {i} + {at}", f"{i} * {OWN} + {at}", f"{start} + {at}", f"({i} << 2) | {at}")
        return self.pick(known, known, f"{start} + (a_i32[{i}] & {OWN - 1})")

    def own_place(self, i: str, start: str) -> str:
        return f"{self.pick('block', 'block', 'block_alias')}[{self.own_index(i, start)}]"

    def read_block(self, i: str, start: str, scope: Scope, base: int) -> None:
        element, name = self.outputs["block"][0], self.fresh("v")
        self.emit(base, f"{name} = {self.own_place(i, start)}")
        scope.add(element, name, assignable=False)

    def change_block(self, i: str, start: str, scope: Scope, base: int) -> None:
        element, place = self.outputs["block"][0], self.own_place(i, start)
        value = self.settled(element, scope)
        kind = self.random.randrange(4)
        if kind == 0 and element in INTEGERS:
            self.emit(base, f"{place} {self.pick('+=', '^=', '-=')} {value}")
        elif kind < 3:
            sign = self.pick("+", "-")
            text = f"{self.own_place(i, start)} {sign} {value}"
            self.emit(base, f"{place} = {text if element in INTEGERS else self.bounded(text, element)}")
        else:
            self.emit(base, f"{place} = {value}")

    def change_tensor(self, i: str, scope: Scope, base: int) -> None:
        """The element of an array of tensors as a whole, or one entry of it."""
        element = self.outputs["o_v"][0]
        assert isinstance(element, Tensor)

        def place() -> str:
            return f"{self.pick('o_v', 'v_alias')}[{i}]"

        def entry() -> str:
            return f"{place()}[{', '.join(str(self.random.randrange(extent)) for extent in element.shape)}]"

        kind = self.random.randrange(3)
        if kind == 0:
            self.emit(base, f"{place()} = {self.settled(element, scope)}")
        elif kind == 1:
            self.emit(base, f"{entry()} = {self.settled(scalar_of(element), scope)}")
        else:
            self.emit(base, f"{entry()} = {entry()}")
