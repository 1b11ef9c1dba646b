"""Random expressions of a wanted type.

Where numpy's promotion is not that of the language, the text says the type: by a cast of the result if the operation wraps alike in a
wider type, else by casts of the operands. Reals stay in bounds, so that no NaN arises.
"""

from __future__ import annotations

import random

from generator_types import INTEGERS, REALS, StructType, Tensor, numpy_agrees, operands_of, promoted, width

WRAPPING = ("+", "-", "*", "&", "|", "^")


class Scope:
    """What may be read and assigned at a place of the program."""

    def __init__(self):
        self.readable: dict[str | Tensor, list[str]] = {}
        self.assignable: dict[str | Tensor, list[str]] = {}
        self.indices: list[str] = []
        self.arrays: dict[str | Tensor, list[tuple[str, int]]] = {}
        #: Variables that are structs; their members are among the others.
        self.structs: dict[StructType, list[str]] = {}

    def inner(self) -> Scope:
        result = Scope()
        for name in ("readable", "assignable", "arrays", "structs"):
            setattr(result, name, {key: list(values) for key, values in getattr(self, name).items()})
        result.indices = list(self.indices)
        return result

    def add(self, type_, name: str, assignable: bool = True) -> None:
        if isinstance(type_, StructType):
            if assignable:
                self.structs.setdefault(type_, []).append(name)
            for member, place in type_.leaves(name):
                self.add(member, place, assignable)
            return
        self.readable.setdefault(type_, []).append(name)
        if assignable:
            self.assignable.setdefault(type_, []).append(name)


class Expressions:
    """Makes expressions; ``depth`` counts how far down the tree it is."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.default_fp = self.pick("f64", "f64", "f32")
        self.default_ip = self.pick("i32", "i32", "i32", "i64")
        #: In debug mode a program is also told what went wrong: then no divisor is zero.
        self.debug = self.random.random() < 0.15
        extra = self.random.sample([*INTEGERS, "f16", "f32", "f32"], self.random.randint(0, 3))
        self.palette = list(dict.fromkeys(["i32", "f64", self.default_fp, *extra]))
        self.integers = [t for t in self.palette if t in INTEGERS]
        self.reals = [t for t in self.palette if t in REALS]
        self.names = 0
        self.funcs: list[tuple[str, list, list]] = []
        self.deepest = self.random.choice([0, 0, 0, 1, 1, 1, 1, 1, 2, 3])

    def pick(self, *choices):
        return self.random.choice(choices)

    def fresh(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def of(self, type_, scope: Scope, depth: int = 0) -> str:
        if isinstance(type_, Tensor):
            return self.tensor(type_, scope, depth)
        if type_ == "u1":
            return self.condition(scope, depth)
        return self.integer(type_, scope, depth) if type_ in INTEGERS else self.real(type_, scope, depth)

    def literal(self, scalar: str) -> str:
        if scalar in REALS:
            return f"oc.cast({self.pick(0.0, 1.0, -0.5, 3.25, 0.0625, 60.0)!r}, oc.{scalar})"
        largest = 2 ** (width(scalar) - (scalar[0] == "i")) - 1
        return f"oc.cast({min(self.pick(0, 1, 2, 3, 7, 100, 65537, 2147483647), largest)}, oc.{scalar})"

    def leaf(self, scalar: str, scope: Scope) -> str:
        choices = [*scope.readable.get(scalar, [])] * 3 + [self.literal(scalar)]
        if scalar != "f16":
            choices += [f"oc.cast({index}, oc.{scalar})" for index in scope.indices]
        return self.pick(*choices)

    def bounded(self, expression: str, scalar: str) -> str:
        limit = 60.0 if scalar == "f16" else 1000.0
        return f"oc.max(oc.min({expression}, oc.cast({limit}, oc.{scalar})), oc.cast({-limit}, oc.{scalar}))"

    def subscript(self, size: int, scope: Scope, depth: int) -> str:
        """An index below a size, which is a power of two. Sometimes its computation overflows."""
        if self.random.random() < 0.06:
            return f"oc.cast({self.plain_subscript(size, scope, depth)}, oc.i32) {self.multiple_of_wrap(scope)}"
        return self.plain_subscript(size, scope, depth)

    def multiple_of_wrap(self, scope: Scope) -> str:
        """Adds a number that is zero once it is wrapped to 32 bits."""
        lowest, half = "oc.cast(-2147483648, oc.i32)", "oc.cast(65536, oc.i32)"
        factor = f"oc.cast({self.pick(*scope.indices)}, oc.i32)" if scope.indices else "oc.cast(3, oc.i32)"
        return self.pick(
            f"+ {lowest} + {lowest}", f"- {lowest} + {lowest}", f"+ {factor} * {half} * {half}", f"- {half} * {half}"
        )

    def plain_subscript(self, size: int, scope: Scope, depth: int) -> str:
        if scope.indices and self.random.random() < 0.4:
            return f"{self.pick(*scope.indices)} & {size - 1}"
        return f"{self.integer('i32', scope, depth + 1)} & {size - 1}"

    def load(self, scalar: str, scope: Scope, depth: int) -> str | None:
        arrays = scope.arrays.get(scalar)
        if not arrays:
            return None
        name, size = self.pick(*arrays)
        return f"{name}[{self.subscript(size, scope, depth)}]"

    def meeting(self, op: str, result: str, scope: Scope, depth: int) -> str:
        """A binary operation on two types that meet in a type."""
        a, b = self.pick(*operands_of(result, self.palette), (result, result))
        if result in REALS and (a in INTEGERS or b in INTEGERS):
            # Integers are brought near to zero first.
            def narrow(t):
                text = self.of(t, scope, depth + 1)
                return f"({text} & oc.cast(63, oc.{t}))" if t in INTEGERS else text
        else:

            def narrow(t):
                return self.of(t, scope, depth + 1)

        left, right = narrow(a), narrow(b)
        if self.debug and op in ("//", "%"):
            right = f"({right} | oc.cast(1, oc.{b}))"
        if numpy_agrees(a, b):
            return f"({left} {op} {right})"
        if (
            op in WRAPPING
            and result in INTEGERS
            and {a[0] + b[0], width(a), width(b)} != {"iu", 64}
            and not (promoted(a, b) == "u64" and "i" in a + b)
        ):
            return f"oc.cast({left} {op} {right}, oc.{result})"
        return f"(oc.cast({left}, oc.{result}) {op} oc.cast({right}, oc.{result}))"

    def integer(self, t: str, scope: Scope, depth: int = 0) -> str:
        r = self.random
        if depth > self.deepest or r.random() < 0.25:
            return self.leaf(t, scope)
        kind = r.randrange(23)
        if kind == 22:
            words = [self.of(t, scope, depth + 1) for _ in range(r.randint(2, 3))]
            return f"({self.pick(' and ', ' or ').join(words)})"
        if kind == 20:
            name, divisor = self.pick("raw_div", "raw_mod"), f"({self.of(t, scope, depth + 1)} & oc.cast(15, oc.{t}))"
            return f"oc.{name}({self.of(t, scope, depth + 1)}, {divisor} + oc.cast(1, oc.{t}))"
        if kind == 21:
            return f"oc.bit_shr({self.of(t, scope, depth + 1)}, {self.of(t, scope, depth + 1)} & oc.cast({width(t) - 1}, oc.{t}))"
        if kind < 6:
            return self.meeting(self.pick("+", "-", "*", "&", "|", "^", "//", "%"), t, scope, depth)
        if kind == 6:
            amount = self.pick(str(r.randrange(width(t))), f"({self.of(t, scope, depth + 1)} & {width(t) - 1})")
            return f"({self.of(t, scope, depth + 1)} {self.pick('<<', '>>')} {amount})"
        if kind == 7:
            return f"{self.pick('min', 'max', 'oc.min', 'oc.max')}({self.of(t, scope, depth + 1)}, {self.of(t, scope, depth + 1)})"
        if kind == 8:
            return f"({self.pick('-', '~')}{self.of(t, scope, depth + 1)})"
        if kind == 9:
            return self.choice(t, scope, depth)
        if kind in (10, 11):
            return self.load(t, scope, depth) or self.leaf(t, scope)
        if kind == 12:
            return f"{self.pick('abs', 'oc.abs')}({self.of(t, scope, depth + 1)})"
        if kind == 13:
            other = self.pick(*self.integers)
            return f"oc.cast({self.of(other, scope, depth + 1)}, oc.{t})"
        if kind == 14:
            return self.integer_of_real(t, scope, depth)
        if kind == 15:
            return f"oc.cast({self.condition(scope, depth + 1)}, oc.{t})"
        if kind == 16:
            exponent = self.pick(str(r.randrange(6)), f"({self.of(self.pick(*self.integers), scope, depth + 1)} & 7)")
            return f"({self.of(t, scope, depth + 1)} ** {exponent})"
        if kind == 17:
            return self.call(t, scope, depth) or self.leaf(t, scope)
        return self.of_tensor(t, scope, depth)

    def integer_of_real(self, t: str, scope: Scope, depth: int) -> str:
        same = [s for s in (*self.integers, *self.reals) if width(s) == width(t) and s != t]
        if same and self.random.random() < 0.5:
            other = self.pick(*same)
            # Zeros of both signs compare equal, but have different bits.
            positive = " + 0.0" if other == "f64" else f" + oc.cast(0.0, oc.{other})"
            return f"oc.bit_cast({self.of(other, scope, depth + 1)}{positive if other in REALS else ''}, oc.{t})"
        other = self.pick(*self.reals)
        value = (
            f"oc.max(oc.min({self.of(other, scope, depth + 1)}, oc.cast(60.0, oc.{other})), oc.cast(-60.0, oc.{other}))"
        )
        if t[0] == "u":
            value = f"oc.abs({value})"
        rounded = self.pick(value, f"oc.floor({value})", f"oc.ceil({value})")
        return f"oc.cast({rounded}, oc.{t})"

    def real(self, t: str, scope: Scope, depth: int = 0) -> str:
        r = self.random
        if depth > self.deepest or r.random() < 0.25:
            return self.leaf(t, scope)
        kind = r.randrange(20)
        if kind in (18, 19):
            return self.division_or_power(t, scope, depth)
        if kind < 5:
            op = self.pick("+", "-", "*")
            text = self.meeting(op, t, scope, depth)
            return self.bounded(text, t) if op == "*" and t != "f64" else text
        if kind == 5:
            return f"({self.of(t, scope, depth + 1)} / (abs({self.of(t, scope, depth + 1)}) + oc.cast(1.0, oc.{t})))"
        if kind == 6:
            return f"oc.sqrt(abs({self.of(t, scope, depth + 1)}))"
        if kind == 7:
            name = self.pick("floor", "ceil", "round") if t == "f64" else self.pick("floor", "ceil")
            return f"oc.{name}({self.of(t, scope, depth + 1)})"
        if kind == 8:
            return self.choice(t, scope, depth)
        if kind in (9, 10):
            return self.load(t, scope, depth) or self.leaf(t, scope)
        if kind == 11:
            i = self.pick(*self.integers)
            return f"oc.cast({self.of(i, scope, depth + 1)} & oc.cast(63, oc.{i}), oc.{t})"
        if kind == 12:
            return f"oc.cast({self.bounded(self.of(other := self.pick(*self.reals), scope, depth + 1), other)}, oc.{t})"
        if kind == 13:
            name = self.pick("min", "max", "oc.min", "oc.max")
            return f"{name}({self.of(t, scope, depth + 1)}, {self.of(t, scope, depth + 1)})"
        if kind == 14 and t == self.default_fp:
            i = self.pick(*self.integers)
            return f"({self.of(i, scope, depth + 1)} / ({self.of(i, scope, depth + 1)} | oc.cast(1, oc.{i})))"
        if kind == 15:
            return self.call(t, scope, depth) or self.leaf(t, scope)
        if kind == 16:
            return f"(-{self.of(t, scope, depth + 1)})"
        return self.of_tensor(t, scope, depth)

    def division_or_power(self, t: str, scope: Scope, depth: int) -> str:
        """The operations that divide and floor, and powers with whole exponents."""
        value, other = self.of(t, scope, depth + 1), self.of(t, scope, depth + 1)
        divisor = f"({self.pick('', '-')}(abs({other}) + oc.cast({self.pick(0.5, 1.0, 3.25)}, oc.{t})))"
        kind = self.random.randrange(5)
        if kind < 2:
            return f"({self.bounded(value, t)} {self.pick('//', '%')} {divisor})"
        if kind == 2:
            return f"oc.{self.pick('raw_div', 'raw_mod')}({self.bounded(value, t)}, {divisor})"
        whole = str(self.random.randint(-2, 5))
        exponent = self.pick(whole, f"({self.of(self.pick(*self.integers), scope, depth + 1)} & 3)")
        # Reciprocals of large powers of halves are subnormal or zero: the base is small, and not near zero.
        return self.bounded(
            f"(oc.max(oc.min({divisor}, oc.cast(8.0, oc.{t})), oc.cast(-8.0, oc.{t})) ** {exponent})", t
        )

    def choice(self, t, scope: Scope, depth: int) -> str:
        a, b, c = self.of(t, scope, depth + 1), self.of(t, scope, depth + 1), self.condition(scope, depth + 1)
        return self.pick(f"({a} if {c} else {b})", f"oc.select({c}, {a}, {b})")

    def condition(self, scope: Scope, depth: int = 0) -> str:
        r = self.random
        flags = scope.readable.get("u1", [])
        if flags and r.random() < 0.3:
            return self.pick(*flags)
        if scope.arrays.get("u1") and r.random() < 0.2:
            name, size = self.pick(*scope.arrays["u1"])
            return f"{name}[{self.subscript(size, scope, depth + 1)}]"
        kind = r.randrange(10)
        if kind == 9 and depth <= self.deepest:
            # Both sides are truth values, of which the bits are taken.
            left, right = (f"oc.cast({self.condition(scope, depth + 1)}, oc.u1)" for _ in range(2))
            return f"({left} {self.pick('&', '|', '^', '==', '!=')} {right})"
        if kind == 8 and depth < 2:
            t = self.tensor_type()
            op = self.pick("<", ">=", "==", "!=")
            return f"({self.of(t, scope, depth + 1)} {op} {self.of(t, scope, depth + 1)}).{self.pick('any', 'all')}()"
        if depth > self.deepest or kind < 4 or kind > 7:
            a, b = self.pick(*self.palette), self.pick(*self.palette)
            if not numpy_agrees(a, b):
                b = a
            op = self.pick("<", "<=", ">", ">=", "==", "!=")
            return f"({self.of(a, scope, depth + 1)} {op} {self.of(b, scope, depth + 1)})"
        if kind == 4:
            return f"(not {self.condition(scope, depth + 1)})"
        if kind == 5:
            return f"({self.condition(scope, depth + 1)} {self.pick('and', 'or')} {self.condition(scope, depth + 1)})"
        if kind == 6:
            return f"oc.cast({self.of(self.pick(*self.palette), scope, depth + 1)}, oc.u1)"
        a, b, c = (self.of("i32", scope, depth + 2) for _ in range(3))
        return f"({a} < {b} <= {c})"
