"""Random statements, funcs and kernels out of random expressions."""

from __future__ import annotations

from generator_expressions import Scope
from generator_tensors import Tensors
from generator_types import INTEGERS, REALS, Tensor

HEADER = "import octants as oc\n\nK = 2"
SIZE = 8
GRID = (4, 3)


class Program(Tensors):
    """One program: a few funcs and a kernel. ``text`` is the program, ``model`` the same with atomics as plain Python."""

    def __init__(self, seed: int):
        super().__init__(seed)
        self.seed = seed
        self.lines: list[tuple[str, str]] = [(line, line) for line in HEADER.split("\n")]
        self.budget = self.random.choice([1, 2, 3, 4, 6, 12])
        #: The arrays that the current loop writes, the place that is its iteration's own, and the indentation of its body.
        self.mine: list[str] = []
        self.target = ""
        self.base = 2
        element = Tensor(self.pick(*self.palette), *self.pick((2, 0), (3, 0), (4, 0), (2, 2)))
        #: Arrays that are read, and arrays that are written, with their elements and shapes.
        self.inputs: dict[str, tuple[str | Tensor, tuple[int, ...]]] = {f"a_{t}": (t, (SIZE,)) for t in self.palette}
        self.outputs: dict[str, tuple[str | Tensor, tuple[int, ...]]] = {f"o_{t}": (t, (SIZE,)) for t in self.palette}
        if self.random.random() < 0.5:
            self.inputs["a_v"] = (element, (SIZE,))
            self.outputs["o_v"] = (element, (SIZE,))
        grid = self.pick(*self.palette)
        self.outputs |= {
            "grid": (grid, GRID),
            "bins": (self.pick(*self.integers), (4,)),
            "d_line": ("i32", (SIZE,)),
            "d_grid": ("i32", GRID),
            "m_f64": ("f64", (SIZE,)),
        }
        # The same array comes in twice.
        self.alias = self.pick(*self.integers)
        self.outputs["alias"] = (self.alias, (SIZE,))
        self.array_names = list(self.inputs)

        for _ in range(self.random.choice([0, 0, 1, 1, 2])):
            self.func()
        self.kernel()
        self.text = "\n".join(line for line, _ in self.lines) + "\n"
        self.model = "\n".join(line for _, line in self.lines) + "\n"

    # ---- statements -----------------------------------------------------------------------------------------------------

    def emit(self, indent: int, text: str, model: str | None = None) -> None:
        self.lines.append(("    " * indent + text, "    " * indent + (model or text)))

    def settled(self, t, scope: Scope) -> str:
        """A value for a variable: reals in bounds, tensors copied."""
        text = self.of(t, scope)
        scalar = t.scalar if isinstance(t, Tensor) else t
        if scalar in REALS:
            text = self.bounded(text, scalar)
        return f"oc.cast({text}, oc.{scalar})" if isinstance(t, Tensor) else text

    def any_type(self):
        return self.tensor_type() if self.random.random() < 0.3 else self.pick(*self.palette)

    def block(self, scope: Scope, indent: int, loops: list[str], count: int | None = None) -> None:
        outer, scope = scope, scope.inner()
        for _ in range(count or self.random.randint(1, 3)):
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
        kind = r.randrange(22 if self.budget > 0 and indent < 6 else 14)
        if kind < 4:
            t = self.any_type()
            name = self.fresh("v")
            self.emit(indent, f"{name} = {self.settled(t, scope)}")
            scope.add(t, name)
        elif kind < 9 and scope.assignable:
            self.assignment(scope, indent)
        elif kind == 9 and loops:
            jump = (
                "break"
                if loops[-1] == "while"
                else self.pick("break", "continue")
                if loops[-1] == "for"
                else "continue"
            )
            self.emit(indent, f"if {self.condition(scope)}:")
            self.emit(indent + 1, jump)
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
            self.body(scope, counter, indent, [*loops, "while"])
        elif kind == 20:
            index = self.fresh("s")
            self.emit(indent, f"for {index} in oc.static(range({r.randint(1, 3)})):")
            self.body(scope, index, indent, [])
        else:
            self.emit(indent, f"if oc.static(K {self.pick('<', '>', '==')} {r.randint(1, 3)}):")
            self.block(scope, indent + 1, loops)
            self.emit(indent, "else:")
            self.block(scope, indent + 1, loops)

    def body(self, scope: Scope, index: str, indent: int, loops: list[str]) -> None:
        inner = scope.inner()
        inner.indices.append(index)
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
        scalar = t.scalar if isinstance(t, Tensor) else t
        op = self.pick("=", "+=", "-=", "^=", "|=", "&=", "*=") if scalar in INTEGERS else "="
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
        several = [func for func in self.funcs if len(func[2]) > 1]
        if several and self.random.random() < 0.7:
            name, params, types = self.random.choice(several)
            value = self.call_text(name, params, scope, 1)
        else:
            types = [self.any_type(), self.any_type()]
            value = ", ".join(self.settled(t, scope) for t in types)
        names = [self.fresh("v") for _ in types]
        self.emit(indent, f"{', '.join(names)} = {value}")
        for name, t in zip(names, types, strict=True):
            scope.add(t, name)

    # ---- funcs and kernels ----------------------------------------------------------------------------------------------

    def start(self) -> Scope:
        scope = Scope()
        for name, (element, shape) in self.inputs.items():
            scope.arrays.setdefault(element, []).append((name, shape[0]))
            scope.add(element, f"{name}[{self.random.randrange(SIZE)}]", assignable=False)
        return scope

    def func(self) -> None:
        name = self.fresh("f")
        params = [self.any_type() for _ in range(self.random.randint(1, 3))]
        scope = self.start()
        names = [self.fresh("p") for _ in params]
        declared = list(names)
        if self.random.random() < 0.3:
            params.append("template")
            names.append("n")
            declared.append("n: oc.template()")
        for text in ("", "", "@oc.func", f"def {name}({', '.join([*self.array_names, *declared])}):"):
            self.emit(0, text)
        for param, t in zip(names, params, strict=True):
            if t == "template":
                scope.indices.append(param)
                continue
            scalar = t.scalar if isinstance(t, Tensor) else t
            local = self.fresh("v")
            text = self.bounded(param, scalar) if scalar in REALS else param
            self.emit(1, f"{local} = oc.cast({text}, oc.{scalar})")
            scope.add(t, local)
        self.emit(1, "acc = oc.cast(0, oc.i32)")
        # Not a block: what it defines may be returned.
        for _ in range(self.random.randint(1, 3)):
            self.statement(scope, 1, [])
        self.digest(Scope(), scope, 1)
        results = [self.pick(*self.palette) for _ in range(self.pick(1, 1, 2))]
        self.emit(1, f"return {', '.join(self.with_digest(t, self.settled(t, scope)) for t in results)}")
        self.funcs.append((name, params, results))

    def annotation(self, element, shape) -> str:
        if isinstance(element, Tensor):
            maker = "matrix" if element.m else "vector"
            dtype = f"oc.types.{maker}({', '.join(map(str, element.shape))}, oc.{element.scalar})"
        else:
            dtype = f"oc.{element}"
        return f"oc.types.ndarray(dtype={dtype}, ndim={len(shape)})"

    def kernel(self) -> None:
        arrays = [f"{name}: {self.annotation(*what)}" for name, what in (self.inputs | self.outputs).items()]
        self.total = self.pick(*self.integers)
        for text in (
            "",
            "",
            "@oc.kernel",
            f"def kernel({', '.join(arrays)}, p: oc.i32, q: oc.f64) -> oc.{self.total}:",
        ):
            self.emit(0, text)
        scope = self.start()
        scope.add("i32", "p", assignable=False)
        scope.add("f64", "q", assignable=False)
        self.emit(1, f"total = oc.cast({self.pick(0, 5)}, oc.{self.total})")
        written: list[str] = []
        for _ in range(self.random.choice([1, 1, 1, 1, 2, 3])):
            if self.random.random() < 0.15:
                # A loop inside a branch is serial.
                self.emit(1, f"if {self.condition(scope, 2)}:")
                self.base = 3
            written += self.section(scope, written)
            self.base = 2
            if self.random.random() < 0.4:
                # What the loops summed, and what is computed between them, flows into the next task.
                t = self.any_type()
                name = self.fresh("v")
                self.emit(1, f"{name} = {self.settled(t, scope)}")
                scope.add(t, name, assignable=False)
            if self.random.random() < 0.4:
                name = self.fresh("v")
                self.emit(1, f"{name} = total {self.pick('+', '^')} oc.cast(1, oc.{self.total})")
                scope.add(self.total, name, assignable=False)
        self.emit(1, "return total")

    def section(self, scope: Scope, written: list[str]) -> list[str]:
        """A parallel loop. What its body writes is read by no other iteration; it reads what earlier loops wrote."""
        r = self.random
        inner = scope.inner()
        over_grid = r.random() < 0.3
        self.digests = "d_grid" if over_grid else "d_line"
        self.mine = ["grid"] if over_grid else r.sample([n for n in self.outputs if n.startswith("o_")], 2)
        if f"o_{self.alias}" in self.mine:
            self.mine.append("alias")
        for name in written:
            element, shape = self.outputs[name]
            if name not in self.mine and len(shape) == 1:
                inner.arrays.setdefault(element, []).append((name, shape[0]))
        if self.base == 2 and r.random() < 0.15:
            self.emit(1, f"oc.loop_config({self.pick('serialize=True', 'block_dim=2', 'parallelize=2')})", "pass")
        self.target = self.grid_loop(inner) if over_grid else self.line_loop(inner)
        for name in self.mine:
            inner.add(self.outputs[name][0], f"{name}[{self.target}]", assignable=False)
        first = ["i32", self.pick(*self.palette)] + ([self.tensor_type()] if r.random() < 0.5 else [])
        self.emit(self.base, "acc = oc.cast(0, oc.i32)")
        for t, name in [(t, self.fresh("v")) for t in first]:
            self.emit(self.base, f"{name} = {self.settled(t, inner)}")
            inner.add(t, name)
        # Not a block: what it defines is stored.
        for _ in range(r.randint(1, 3)):
            self.statement(inner, self.base, ["parallel" if self.base == 2 else "for"])
        self.digest(Scope(), inner, self.base)
        for name in self.mine:
            self.store(name, inner, self.base)
        self.emit(self.base, f"{self.digests}[{self.target}] += acc")
        if not over_grid and r.random() < 0.25:
            name = self.pick("sin", "cos", "exp", "tanh", "log")
            value = self.bounded(self.real("f64", inner), "f64")
            argument = {"exp": f"{value} * 0.01", "log": f"abs({value}) + 0.25"}.get(name, value)
            self.emit(self.base, f"m_f64[{self.target}] = oc.{name}({argument})")
        for _ in range(r.randint(0, 2)):
            self.reduction(inner)
        written, self.mine = [*self.mine, *written], []
        return written

    def line_loop(self, inner: Scope) -> str:
        i = self.fresh("i")
        source = next(iter(self.outputs))
        over = self.pick(f"range({source}.shape[0])", f"range({SIZE})", "range(p & 7)", f"range(1, {SIZE})", source)
        self.emit(self.base - 1, f"for {i} in {over}:")
        inner.indices.append(i)
        return i

    def grid_loop(self, inner: Scope) -> str:
        i, j, k = self.fresh("i"), self.fresh("j"), self.fresh("g")
        n, m = GRID
        kind = self.random.randrange(5)
        if kind == 0:
            self.emit(self.base - 1, f"for {i}, {j} in oc.ndrange((1, {n}), {m}):")
        elif kind == 1:
            self.emit(self.base - 1, f"for {i}, {j} in grid:")
        elif kind < 4:
            self.emit(self.base - 1, f"for {k} in oc.grouped({self.pick('grid', f'oc.ndrange({n}, {m})')}):")
            inner.indices += [f"{k}[0]", f"{k}[1]"]
            return k
        else:
            one = self.fresh("l")
            self.emit(self.base - 1, f"for {i}, {j}, {one} in oc.ndrange({n}, {m}, (1, 2)):")
            inner.indices.append(one)
        inner.indices += [i, j]
        return f"{i}, {j}"

    def store(self, name: str, scope: Scope, indent: int) -> None:
        element, _ = self.outputs[name]
        scalar = element.scalar if isinstance(element, Tensor) else element
        op = self.pick("=", "+=", "^=", "-=") if scalar in INTEGERS else "="
        place = f"{name}[{self.target}]"
        if isinstance(element, Tensor) and self.random.random() < 0.4:
            place, element = self.entry_target(place, element, scope), scalar
        self.emit(indent, f"{place} {op} {self.settled(element, scope)}")

    def reduction(self, inner: Scope) -> None:
        """An update whose result does not depend on the order: one operation for each place."""
        element, _ = self.outputs["bins"]
        if self.random.random() < 0.5:
            self.sum_op = getattr(self, "sum_op", None) or self.pick("+=", "^=", "|=", "&=", "-=")
            self.emit(self.base, f"total {self.sum_op} {self.integer(self.total, inner, 2)}")
            return
        self.bin_op = getattr(self, "bin_op", None) or self.pick("add", "sub", "xor", "or", "and", "min", "max")
        place = f"bins[{self.subscript(4, inner, 2)}]"
        value = self.integer(element, inner, 2)
        plain = {"add": "+", "sub": "-", "xor": "^", "or": "|", "and": "&"}
        if self.bin_op in plain and self.random.random() < 0.5:
            self.emit(self.base, f"{place} {plain[self.bin_op]}= {value}")
        elif self.bin_op in plain:
            self.emit(self.base, f"oc.atomic_{self.bin_op}({place}, {value})", f"{place} {plain[self.bin_op]}= {value}")
        else:
            self.emit(
                self.base, f"oc.atomic_{self.bin_op}({place}, {value})", f"{place} = {self.bin_op}({place}, {value})"
            )
