"""Random statements out of random expressions."""

from __future__ import annotations

from generator_expressions import Scope
from generator_tensors import Tensors
from generator_types import INTEGERS, REALS, StructType, Tensor, scalar_of

HEADER = "import dataclasses\n\nimport octants as oc\n\nK = 2"
MODEL_HEADER = "import dataclasses\n\nimport generator_model as oc\n\nK = 2"


class Statements(Tensors):
    """Writes statements: the lines of the program, and beside each the line of the model where that is another."""

    def __init__(self, seed: int):
        super().__init__(seed)
        self.lines: list[tuple[str, str]] = list(zip(HEADER.split("\n"), MODEL_HEADER.split("\n"), strict=True))
        self.budget = self.random.choice([1, 1, 1, 1, 2, 2, 2, 3, 4, 8])
        #: The arrays that the current loop writes, and the place that is its iteration's own.
        self.mine: list[str] = []
        self.target = ""
        #: Statements of other files: each writes one, or says that it does not fit here.
        self.special: list = [self.flag, self.nested_ndrange]

    def emit(self, indent: int, text: str, model: str | None = None) -> None:
        self.lines.append(("    " * indent + text, "    " * indent + (model or text)))

    def settled(self, t, scope: Scope) -> str:
        """A value for a variable: reals in bounds, tensors copied."""
        text = self.of(t, scope)
        if isinstance(t, StructType):
            return text
        scalar = scalar_of(t)
        if scalar in REALS:
            text = self.bounded(text, scalar)
        return f"oc.cast({text}, oc.{scalar})" if isinstance(t, Tensor) else text

    def any_type(self):
        return self.tensor_type() if self.random.random() < 0.3 else self.pick(*self.palette)

    def block(self, scope: Scope, indent: int, loops: list[str], count: int | None = None) -> None:
        outer, scope = scope, scope.inner()
        for _ in range(count or self.random.randint(1, 2)):
            self.statement(scope, indent, loops)
        self.digest(outer, scope, indent)

    def digest(self, outer: Scope, scope: Scope, indent: int) -> None:
        """Lets what a block defined count: in the end ``acc`` reaches a result."""
        for t, names in scope.assignable.items():
            for name in names:
                if name in outer.assignable.get(t, []):
                    continue
                scalar, place = (
                    (t.scalar, f"{name}[{', '.join('1' * len(t.shape))}]") if isinstance(t, Tensor) else (t, name)
                )
                value = f"oc.cast({place}, oc.f64) * 1024.0" if scalar in REALS else place
                self.emit(indent, f"acc = (acc << 1) ^ oc.cast({value}, oc.i32)")

    def statement(self, scope: Scope, indent: int, loops: list[str]) -> None:
        r = self.random
        self.budget -= 1
        if r.random() < 0.2 and any(write(scope, indent, loops) for write in r.sample(self.special, 3)):
            return
        kind = r.randrange(22 if self.budget > 0 and indent < 6 else 14)
        if kind < 4:
            t = self.any_type()
            name = self.fresh("v")
            self.emit(indent, f"{name} = {self.settled(t, scope)}")
            scope.add(t, name)
        elif kind < 9 and scope.assignable:
            self.assignment(scope, indent)
        elif kind == 9 and loops and loops[-1] != "static":
            self.jump(scope, indent, loops)
        elif kind == 10:
            t = self.pick(*self.integers)
            name, inner = self.fresh("v"), self.fresh("w")
            self.emit(indent, f"{name} = ({inner} := {self.of(t, scope, 1)}) {self.pick('+', '^', '-')} {inner}")
            scope.add(t, inner)
            scope.add(t, name)
        elif kind == 11:
            self.unpacking(scope, indent)
        elif kind == 12 and self.mine:
            self.store(self.pick(*self.mine), scope, indent)
        elif kind == 13 and any(t in INTEGERS for t in scope.assignable):
            self.local_atomic(scope, indent)
        elif kind < 17:
            self.branch(scope, indent, loops)
        elif kind < 19:
            index = self.fresh("k")
            low = self.pick("", "1, ")
            bound = self.pick(str(r.randint(0, 5)), f"({self.integer('i32', scope, 1)}) & 3")
            self.emit(indent, f"for {index} in range({low}{bound}):")
            self.body(scope, index, indent, [*loops, "for"])
        elif kind == 19:
            counter = self.fresh("c")
            self.emit(indent, f"{counter} = 0")
            self.emit(indent, f"while {counter} < {r.randint(1, 5)} and {self.condition(scope)}:")
            self.emit(indent + 1, f"{counter} += 1")
            self.body(scope, counter, indent, [*loops, "for"])
        elif kind == 20:
            index = self.fresh("s")
            self.emit(indent, f"for {index} in oc.static(range({r.randint(1, 3)})):")
            self.body(scope, index, indent, [*loops, "static"])
        else:
            self.emit(indent, f"if oc.static(K {self.pick('<', '>', '==')} {r.randint(1, 3)}):")
            self.block(scope, indent + 1, loops)
            self.emit(indent, "else:")
            self.block(scope, indent + 1, loops)

    def jump(self, scope: Scope, indent: int, loops: list[str]) -> None:
        self.emit(indent, f"if {self.condition(scope)}:")
        self.emit(indent + 1, "continue" if loops[-1] == "parallel" else self.pick("break", "continue"))

    def body(self, scope: Scope, index: str, indent: int, loops: list[str]) -> None:
        inner = scope.inner()
        inner.indices.append(index)
        if loops[-1] == "for" and self.random.random() < 0.25:
            self.jump(inner, indent + 1, loops)
        self.block(inner, indent + 1, loops)

    def branch(self, scope: Scope, indent: int, loops: list[str]) -> None:
        self.emit(indent, f"if {self.condition(scope)}:")
        self.block(scope, indent + 1, loops)
        if self.random.random() < 0.3:
            self.emit(indent, f"elif {self.condition(scope)}:")
            self.block(scope, indent + 1, loops)
        if self.random.random() < 0.5:
            self.emit(indent, "else:")
            self.block(scope, indent + 1, loops)

    def assignment(self, scope: Scope, indent: int) -> None:
        t = self.pick(*scope.assignable)
        name = self.pick(*scope.assignable[t])
        scalar = scalar_of(t)
        op = self.pick("=", "+=", "-=", "^=", "|=", "&=", "*=") if scalar in INTEGERS else "="
        if scalar == "u1":
            op = self.pick("=", "^=", "|=", "&=")
        kind = self.random.randrange(4)
        if len(scope.assignable[t]) > 1 and kind == 0:
            other = self.pick(*(n for n in scope.assignable[t] if n != name))
            self.emit(indent, f"{name}, {other} = {other}, {name}")
        elif isinstance(t, Tensor) and kind < 3:
            if not t.m and self.random.random() < 0.4:
                letters = self.random.sample("xyzw"[: t.n], self.random.randint(1, t.n))
                value = self.settled(Tensor(scalar, len(letters)) if len(letters) > 1 else scalar, scope)
                self.emit(indent, f"{name}.{''.join(letters)} = {value}")
            else:
                self.emit(indent, f"{self.entry_target(name, t, scope)} {op} {self.settled(scalar, scope)}")
        else:
            self.emit(indent, f"{name} {op} {self.settled(t, scope)}")

    def local_atomic(self, scope: Scope, indent: int) -> None:
        """An atomic update of a variable, which gives the old value."""
        t = self.pick(*(t for t in scope.assignable if t in INTEGERS))
        name, old = self.pick(*scope.assignable[t]), self.fresh("v")
        op, sign = self.pick(("add", "+"), ("xor", "^"), ("and", "&"), ("or", "|"), ("sub", "-"))
        value = self.of(t, scope, 1)
        self.emit(indent, f"{old} = oc.atomic_{op}({name}, {value})", f"{old} = {name}; {name} {sign}= {value}")
        scope.add(t, old)

    def with_digest(self, t: str, value: str) -> str:
        return f"({value} {'^' if t in INTEGERS else '+'} oc.cast(acc{' & 15' if t in REALS else ''}, oc.{t}))"

    def entry_target(self, name: str, t: Tensor, scope: Scope) -> str:
        return f"{name}[{', '.join(self.entry_index(extent, scope, 1) for extent in t.shape)}]"

    def unpacking(self, scope: Scope, indent: int) -> None:
        several = [func for func in self.funcs if len(func[3]) > 1]
        if several and self.random.random() < 0.7:
            name, arrays, params, types = self.random.choice(several)
            value = f"{name}({', '.join([*arrays, *self.given(params, scope, 1)])})"
        else:
            types = [self.any_type(), self.any_type()]
            value = ", ".join(self.settled(t, scope) for t in types)
        names = [self.fresh("v") for _ in types]
        self.emit(indent, f"{', '.join(names)} = {value}")
        for name, t in zip(names, types, strict=True):
            scope.add(t, name)

    def flag(self, scope: Scope, indent: int, _loops: list[str]) -> bool:
        """A variable of truth values."""
        name = self.fresh("b")
        self.emit(indent, f"{name} = oc.cast({self.condition(scope)}, oc.u1)")
        scope.add("u1", name)
        return True

    def nested_ndrange(self, scope: Scope, indent: int, loops: list[str]) -> bool:
        """A loop over several axes inside another loop."""
        if self.budget <= 0 or indent > 5:
            return False
        a, b, n = self.fresh("k"), self.fresh("k"), self.random.randint(1, 3)
        bound = self.pick("2", f"(0, ({self.integer('i32', scope, 1)}) & 3)", "(1, 3)")
        inner = scope.inner()
        if self.random.random() < 0.3:
            self.emit(indent, f"for {a} in oc.grouped(oc.ndrange({n}, {bound})):")
            inner.indices += [f"{a}[0]", f"{a}[1]"]
        else:
            self.emit(indent, f"for {a}, {b} in oc.ndrange({n}, {bound}):")
            inner.indices += [a, b]
        self.block(inner, indent + 1, [*loops, "for"])
        return True
