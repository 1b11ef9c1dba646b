"""Updates of shared places whose result does not depend on the order: one operation for each place."""

from __future__ import annotations

import re
from dataclasses import dataclass

from generator_expressions import Scope
from generator_functions import Functions
from generator_types import INTEGERS, Tensor, scalar_of

SIGNS = {"add": "+", "sub": "-", "xor": "^", "or": "|", "and": "&"}
WHOLE = (*SIGNS, "min", "max", "mul")


@dataclass(frozen=True)
class Shared:
    """A place that many iterations update: an array with a size, or a variable of the kernel."""

    name: str
    type: str | Tensor
    op: str
    size: int = 0
    #: Whether assignments to it are told to be updates. An element of a sparse field is looked for anew where it is written.
    is_assigned: bool = True


class Reductions(Functions):
    """Writes updates of what iterations share."""

    def shared(self, name: str, type_, size: int = 0) -> Shared:
        if isinstance(type_, Tensor):
            ops = tuple(SIGNS)
        else:
            ops = WHOLE if type_ in INTEGERS else ("add", "sub", "min", "max")
        return Shared(name, type_, self.pick(*ops), size)

    def scatter_loop(self, bins: list[Shared], scope: Scope, base: int) -> None:
        """A loop that only updates what is shared, long enough for each thread to have copies of it."""
        inner, i = scope.inner(), self.fresh("i")
        inner.indices.append(i)
        self.emit(base - 1, f"for {i} in range({self.pick(520, 640)}):")
        for shared in self.random.sample(bins, self.random.randint(1, len(bins))):
            self.update(shared, inner, base)

    def update(self, shared: Shared, scope: Scope, indent: int) -> None:
        if shared.is_assigned and self.random.random() < 0.5:
            self.assigned_update(shared, scope, indent)
            return
        place = f"{shared.name}[{self.subscript(shared.size, scope, 2)}]" if shared.size else shared.name
        value, op = self.update_value(shared, scope), shared.op
        sign = SIGNS.get(op)
        if sign and (isinstance(shared.type, Tensor) or self.random.random() < 0.5):
            self.emit(indent, f"{place} {sign}= {value}")
            return
        sign = "*" if op == "mul" else sign
        model = f"{place} {sign}= {value}" if sign else f"{place} = {op}({place}, {value})"
        self.emit(indent, f"oc.atomic_{op}({place}, {value})", model)

    def assigned_update(self, shared: Shared, scope: Scope, indent: int) -> None:
        """A reduction by assignment, of a place that is the same in all iterations. It may be in a branch or in an inner loop."""
        place = f"{shared.name}[{self.pick('0', '3', 'K', f'p & {shared.size - 1}')}]" if shared.size else shared.name
        scope = scope.inner()
        kind = self.random.randrange(6)
        if kind == 0:
            self.emit(indent, f"if {self.condition(scope)}:")
            indent += 1
        elif kind == 1:
            index = self.fresh("k")
            self.emit(indent, f"for {index} in range({self.random.randint(1, 3)}):")
            scope.indices.append(index)
            indent += 1
        value, sign = self.update_value(shared, scope), SIGNS.get(shared.op)
        # What loops, in a function, is not compared with itself: then a condition on it is a race as far as the compiler can see.
        if self.random.random() < 0.5 or re.search(r"\bf\d+\(", value):
            name = self.fresh("v")
            self.emit(indent, f"{name} = {value}")
            value = name
        if not sign and shared.op != "mul":
            self.assigned_extremum(shared, place, value, indent)
            return
        sign = sign or "*"
        forms = [f"{place} {sign} {value}"]
        # What is subtracted stands on the right.
        forms += [f"{value} {sign} {place}"] if sign != "-" else []
        self.emit(indent, f"{place} = {self.pick(*forms)}")

    def assigned_extremum(self, shared: Shared, place: str, value: str, indent: int) -> None:
        op, more = shared.op, ">" if shared.op == "max" else "<"
        less = "<" if more == ">" else ">"
        equal = self.pick("", "=")
        kind = self.random.randrange(7)
        if kind < 2:
            given = self.pick(f"{place}, {value}", f"{value}, {place}")
            self.emit(indent, f"{place} = {self.pick('', 'oc.')}{op}({given})")
        elif kind < 5:
            self.emit(indent, f"if {self.pick(f'{value} {more}{equal} {place}', f'{place} {less}{equal} {value}')}:")
            self.emit(indent + 1, f"{place} = {value}")
        elif kind == 5:
            self.emit(indent, f"{place} = {value} if {value} {more}{equal} {place} else {place}")
        else:
            self.emit(indent, f"{place} = oc.select({place} {more}{equal} {value}, {place}, {value})")

    def update_value(self, shared: Shared, scope: Scope) -> str:
        """Reals are summed as small whole numbers: every partial sum is exact."""
        scalar = scalar_of(shared.type)
        if scalar in INTEGERS:
            return self.of(shared.type, scope, 2)
        if shared.op in ("min", "max"):
            return self.bounded(self.real(scalar, scope, 2), scalar)
        whole = self.pick(*self.integers)
        most = 1 if scalar == "f16" else 63
        return f"oc.cast({self.integer(whole, scope, 2)} & oc.cast({most}, oc.{whole}), oc.{scalar})"
