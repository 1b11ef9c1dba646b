"""Random expressions with vectors and matrices."""

from __future__ import annotations

from generator_expressions import Expressions, Scope
from generator_types import INTEGERS, REALS, Tensor, width


class Tensors(Expressions):
    """Expressions of tensor types, and of scalars out of tensors."""

    def shapes(self) -> list[tuple[int, int]]:
        return [(2, 0), (3, 0), (4, 0), (2, 2), (3, 2), (2, 3), (3, 3)]

    def tensor_scalar(self) -> str:
        return self.pick(*self.palette)

    def tensor_type(self) -> Tensor:
        return Tensor(self.tensor_scalar(), *self.pick(*self.shapes()))

    def fill(self, t: Tensor, scope: Scope, depth: int) -> str:
        """A constructor."""

        def entry():
            return self.of(t.scalar, scope, max(depth + 1, self.deepest))

        if not t.m and t.scalar != "f16" and self.random.random() < 0.15:
            e = self.fresh("e")
            entries = f"{entry()} - oc.cast({e}, oc.{t.scalar}) for {e} in oc.static(range({t.n}))"
            return f"oc.Vector([{entries}], dt=oc.{t.scalar})"
        if not t.m:
            return f"oc.Vector([{', '.join(entry() for _ in range(t.n))}], dt=oc.{t.scalar})"
        rows = ", ".join(f"[{', '.join(entry() for _ in range(t.m))}]" for _ in range(t.n))
        return f"oc.Matrix([{rows}], dt=oc.{t.scalar})"

    def tensor_leaf(self, t: Tensor, scope: Scope, depth: int) -> str:
        known = scope.readable.get(t, [])
        arrays = scope.arrays.get(t, [])
        if known and self.random.random() < 0.7:
            return self.pick(*known)
        if arrays and self.random.random() < 0.5:
            name, size = self.pick(*arrays)
            return f"{name}[{self.subscript(size, scope, depth + 1)}]"
        return self.fill(t, scope, depth)

    def tensor(self, t: Tensor, scope: Scope, depth: int = 0) -> str:
        r = self.random
        if depth > min(self.deepest, 2) or r.random() < 0.3:
            return self.tensor_leaf(t, scope, depth)
        integral = t.scalar in INTEGERS
        kind = r.randrange(14)

        def again():
            return self.tensor(t, scope, depth + 1)

        if kind < 4:
            op = self.pick("+", "-", "*", "&", "|", "^") if integral else self.pick("+", "-", "*")
            # An i64 beside a matrix is taken for a plain Python number by the host's matrices.
            scalar = t.scalar != "i64" and r.random() < 0.35
            left, right = again(), self.of(t.scalar, scope, depth + 1) if scalar else again()
            if scalar and r.random() < 0.5:
                left, right = right, left
            text = f"({left} {op} {right})"
            return self.tensor_bounded(text, t) if op == "*" and not integral else text
        if kind == 12 and integral:
            return self.whole_division(t, scope, depth)
        if kind == 4:
            return f"({self.pick('-', '~') if integral else '-'}{again()})"
        if kind == 5:
            return f"{self.pick('oc.min', 'oc.max')}({again()}, {again()})"
        if kind == 6:
            return f"oc.select({again()} {self.pick('<', '<=', '==', '!=')} {again()}, {again()}, {again()})"
        if kind == 7:
            return f"{self.pick('abs', 'oc.abs')}({again()})"
        if kind == 8 and not t.m:
            source = Tensor(t.scalar, self.pick(2, 3, 4))
            letters = self.pick("xyzw", "rgba", "stpq")[: source.n]
            name = "".join(self.pick(*letters) for _ in range(t.n))
            known = scope.readable.get(source)
            return f"{self.pick(*known) if known else self.fill(source, scope, depth)}.{name}"
        if kind == 9:
            other = self.pick(*(self.integers if integral else self.reals))
            inner = self.tensor(Tensor(other, t.n, t.m), scope, depth + 1)
            return (
                f"oc.cast({inner if integral else self.tensor_bounded(inner, Tensor(other, t.n, t.m))}, oc.{t.scalar})"
            )
        if kind == 10 and not t.m and t.n < 4 and r.random() < 0.3:
            start = r.randrange(5 - t.n)
            return f"{self.fill(Tensor(t.scalar, 4), scope, depth)}[{start}:{start + t.n}]"
        if kind == 10:
            return self.product(t, scope, depth, integral) or again()
        return self.tensor_leaf(t, scope, depth)

    def whole_division(self, t: Tensor, scope: Scope, depth: int) -> str:
        """Divisions and shifts of each entry."""
        left, right = self.tensor(t, scope, depth + 1), self.tensor_leaf(t, scope, depth + 1)
        if self.random.random() < 0.5:
            return f"({left} {self.pick('//', '%')} ({right} | oc.cast(1, oc.{t.scalar})))"
        return f"({left} {self.pick('<<', '>>')} ({right} & oc.cast({width(t.scalar) - 1}, oc.{t.scalar})))"

    def product(self, t: Tensor, scope: Scope, depth: int, integral: bool) -> str | None:
        if t.m:
            if self.random.random() < 0.4:
                return f"{self.tensor_leaf(Tensor(t.scalar, t.m, t.n), scope, depth)}.transpose()"
            if self.random.random() < 0.4:
                left, right = Tensor(t.scalar, t.n), Tensor(t.scalar, t.m)
                text = f"{self.tensor_leaf(left, scope, depth)}.outer_product({self.tensor_leaf(right, scope, depth)})"
                return self.tensor_bounded(text, t)
            if not integral:
                return None
            inner = self.pick(2, 3)
            left, right = Tensor(t.scalar, t.n, inner), Tensor(t.scalar, inner, t.m)
            return f"({self.tensor_leaf(left, scope, depth)} @ {self.tensor_leaf(right, scope, depth)})"
        if t.n == 3 and self.random.random() < 0.5:
            text = f"{self.tensor_leaf(t, scope, depth)}.cross({self.tensor_leaf(t, scope, depth)})"
            return text if integral else self.tensor_bounded(text, t)
        if not integral or t.n == 4:
            return None
        inner = self.pick(2, 3)
        vector = self.tensor_leaf(Tensor(t.scalar, inner), scope, depth)
        if self.random.random() < 0.5:
            return f"({self.tensor_leaf(Tensor(t.scalar, t.n, inner), scope, depth)} @ {vector})"
        return f"({vector} @ {self.tensor_leaf(Tensor(t.scalar, inner, t.n), scope, depth)})"

    def tensor_bounded(self, text: str, t: Tensor) -> str:
        return self.bounded(text, t.scalar) if t.scalar in REALS else text

    def of_tensor(self, t: str, scope: Scope, depth: int) -> str:
        """A scalar out of a tensor."""
        if depth > 2:
            return self.leaf(t, scope)
        tensors = [name for name in scope.readable if isinstance(name, Tensor) and name.scalar == t]
        source = (
            self.pick(*tensors) if tensors and self.random.random() < 0.8 else Tensor(t, *self.pick(*self.shapes()))
        )
        value = (
            self.tensor_leaf(source, scope, depth)
            if self.random.random() < 0.7
            else self.tensor(source, scope, depth + 1)
        )
        kind = self.random.randrange(8)
        if kind < 5:
            return self.entry(value, source, scope, depth)
        if kind == 5 and not source.m and t in INTEGERS:
            return f"({value} @ {self.tensor_leaf(source, scope, depth)})"
        if source.m:
            method = self.pick("sum", "max", "min", *(["trace", "determinant"] if source.n == source.m else []))
        else:
            method = self.pick("sum", "max", "min", "norm_sqr")
        text = f"{value}.{method}()"
        if kind == 6 and not source.m:
            text = f"{value}.dot({self.tensor_leaf(source, scope, depth)})"
        return text if t in INTEGERS else self.bounded(text, t)

    def entry(self, value: str, source: Tensor, scope: Scope, depth: int) -> str:
        if not source.m and self.random.random() < 0.3:
            return f"{value}.{self.pick(*'xyzw'[: source.n])}"
        return f"{value}[{', '.join(self.entry_index(extent, scope, depth) for extent in source.shape)}]"

    def entry_index(self, extent: int, scope: Scope, depth: int) -> str:
        if self.random.random() < 0.5:
            return str(self.random.randrange(extent))
        if extent == 3:
            return f"oc.min({self.integer('i32', scope, depth + 1)} & 3, oc.cast(2, oc.i32))"
        return f"{self.integer('i32', scope, depth + 1)} & {extent - 1}"
