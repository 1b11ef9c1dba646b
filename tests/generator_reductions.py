"""Updates of shared places whose result does not depend on the order: one operation for each place."""

from __future__ import annotations

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


class Reductions(Functions):
    """Writes updates of what iterations share."""

    def shared(self, name: str, type_, size: int = 0) -> Shared:
        if isinstance(type_, Tensor):
            ops = tuple(SIGNS)
        else:
            ops = WHOLE if type_ in INTEGERS else ("add", "sub", "min", "max")
        return Shared(name, type_, self.pick(*ops), size)

    def scatter_loop(self, bins: list[Shared], scope: Scope, base: int) -> None:
        """A loop that only updates shared arrays, long enough for each thread to have copies of them."""
        inner, i = scope.inner(), self.fresh("i")
        inner.indices.append(i)
        self.emit(base - 1, f"for {i} in range({self.pick(520, 640)}):")
        for shared in self.random.sample(bins, self.random.randint(1, len(bins))):
            self.update(shared, inner, base)

    def update(self, shared: Shared, scope: Scope, indent: int) -> None:
        place = f"{shared.name}[{self.subscript(shared.size, scope, 2)}]" if shared.size else shared.name
        value, op = self.update_value(shared, scope), shared.op
        sign = SIGNS.get(op)
        if sign and (isinstance(shared.type, Tensor) or self.random.random() < 0.5):
            self.emit(indent, f"{place} {sign}= {value}")
            return
        sign = "*" if op == "mul" else sign
        model = f"{place} {sign}= {value}" if sign else f"{place} = {op}({place}, {value})"
        self.emit(indent, f"oc.atomic_{op}({place}, {value})", model)

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
