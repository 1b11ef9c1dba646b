"""Whole programs: classes, functions, and kernels that run one after another on the same arrays."""

from __future__ import annotations

from dataclasses import replace

from generator_edges import Edges
from generator_expressions import Scope
from generator_reductions import Shared
from generator_straight import OWN
from generator_types import INTEGERS, StructType, Tensor, annotation, scalar_of

GRID = (4, 3)
#: Functions that are exact to a few units in the last place, with arguments that keep them finite.
MATH = {
    "sin": "{x}", "cos": "{x}", "tan": "{x}", "tanh": "{x}", "erf": "{x}", "exp": "{x} / oc.cast({limit}, oc.{t})",
    "log": "abs({x}) + oc.cast(0.25, oc.{t})", "rsqrt": "abs({x}) + oc.cast(0.25, oc.{t})",
    "asin": "{x} / (abs({x}) + oc.cast(1.0, oc.{t}))", "acos": "{x} / (abs({x}) + oc.cast(1.0, oc.{t}))",
    "pow": "abs({x}) + oc.cast(0.25, oc.{t}), oc.max(oc.min({y}, oc.cast(2.0, oc.{t})), oc.cast(-2.0, oc.{t}))",
    # Of zeros with different signs, minimum and maximum may be either: here the sign counts.
    "atan2": "{x} + oc.cast(0.0, oc.{t}), {y} + oc.cast(0.0, oc.{t})",
}  # fmt: skip


class Program(Edges):
    """One program. ``text`` is the program, ``model`` the same as plain Python; ``kernels`` are called in order."""

    def __init__(self, seed: int):
        super().__init__(seed)
        r = self.random
        self.seed = seed
        self.size = r.choice([8] * 8 + [16, 16, 32, 64])
        line = (self.size,)
        #: Arrays that are read, and arrays that are written, with their elements and shapes.
        self.inputs: dict[str, tuple[str | Tensor, tuple[int, ...]]] = {f"a_{t}": (t, line) for t in self.palette}
        self.outputs: dict[str, tuple[str | Tensor, tuple[int, ...]]] = {f"o_{t}": (t, line) for t in self.palette}
        if r.random() < 0.5:
            element = Tensor(self.pick(*self.palette), *self.pick((2, 0), (3, 0), (4, 0), (2, 2), (3, 2), (3, 3)))
            self.inputs["a_v"] = self.outputs["o_v"] = (element, line)
        if r.random() < 0.4:
            self.inputs["a_u1"] = self.outputs["o_u1"] = ("u1", line)
        #: Parameters that are views: their offsets in larger arrays.
        self.offsets: dict[str, int] = {}
        if r.random() < 0.4:
            for name, part in (("b_in", self.inputs), ("o_part", self.outputs)):
                part[name] = (self.any_type(), line)
                self.offsets[name] = r.randrange(5)
                self.views.add(name)
        if r.random() < 0.3:
            self.inputs["c_in"] = (self.any_type(), line)
            self.offsets["c_in"] = r.randrange(5)
            self.views.add("c_in")
            self.clamped.add("c_in")
        grid = self.tensor_type() if r.random() < 0.3 else self.pick(*self.palette)
        self.outputs |= {
            "grid": (grid, GRID),
            "bins": (self.pick(*self.integers), (4,)),
            "real_bins": (self.pick(*self.reals), (4,)),
            "d_line": ("i32", line),
            "d_grid": ("i32", GRID),
        }
        self.math = self.pick(*self.reals)
        self.outputs[f"m_{self.math}"] = (self.math, line)
        self.outputs["block"] = (self.pick(*self.palette), (OWN * self.size,))
        #: Parameters that are the same array as another one.
        self.aliases = {"alias": f"o_{self.pick(*self.integers)}", "block_alias": "block"}
        if "o_v" in self.outputs:
            self.aliases["v_alias"] = "o_v"
        self.outputs |= {alias: self.outputs[name] for alias, name in self.aliases.items()}
        self.array_names = list(self.inputs)
        self.choose_fields()
        self.choose_quantised()
        self.choose_lists()
        self.choose_overlaps()
        self.choose_edges()
        self.bins = [
            replace(self.shared(name, self.outputs[name][0], 4), is_assigned=not self.is_sparse(name))
            for name in ("bins", "real_bins")
        ]

        for _ in range(r.choice([0, 0, 0, 1, 2])):
            self.struct_class()
        self.choose_struct_field()
        for _ in range(r.choice([0, 0, 0, 1, 1, 2])):
            self.func()
        for _ in range(r.choice([0, 0, 0, 0, 1, 2])):
            self.real_func()
        for _ in range(r.choice([0, 0, 1])):
            self.storing_func()
        self.written: list[str] = []
        self.loop_funcs = [self.loop_func() for _ in range(r.choice([0, 0, 0, 1]))]
        self.struct_param: StructType | None = (
            self.pick(*self.struct_types) if self.struct_types and r.random() < 0.5 else None
        )
        self.kernels = [self.kernel() for _ in range(r.choice([1] * 9 + [2]))]
        if self.in_arrays and r.random() < 0.6:
            self.kernels.append(self.branching_kernel(self.parameters()))
        self.text = "\n".join(line for line, _ in self.lines) + "\n"
        self.model = "\n".join(line for _, line in self.lines) + "\n"

    # ---- kernels --------------------------------------------------------------------------------------------------------

    def array_parameter(self, name: str) -> str:
        """The annotation of an array, a view or a field."""
        if name in self.fields:
            return "oc.template()"
        element, shape = (self.inputs | self.outputs)[name]
        if name in self.clamped:
            return f'oc.BufferView[{annotation(element)}, "clamp"]'
        if name in self.offsets:
            return "oc.BufferView" if isinstance(element, Tensor) else f"oc.BufferView[oc.{element}]"
        return f"oc.types.ndarray(dtype={annotation(element)}, ndim={len(shape)})"

    def parameters(self) -> dict[str, str]:
        """The parameters of a kernel with their annotations."""
        found = {name: self.array_parameter(name) for name in self.inputs | self.outputs}
        found |= {"p": "oc.i32", "q": "oc.f64"}
        found |= {"st": self.struct_param.name} if self.struct_param else {}
        found |= {"li": "oc.template()"} if self.list_element else {}
        return found | ({"sf": "oc.template()"} if self.struct_field else {})

    def all_names(self) -> list[str]:
        found = [*self.inputs, *self.outputs, "p", "q", *(["li"] if self.list_element else [])]
        return [*found, *(["sf"] if self.struct_field else [])]

    def kernel(self) -> str:
        name = self.fresh("kernel")
        totals = [self.shared("total", self.pick(*self.integers))]
        if self.random.random() < 0.4:
            totals.append(self.shared("real_total", self.pick(*self.reals)))
        if self.random.random() < 0.3:
            totals.append(self.shared("vector_total", Tensor(self.pick(*self.integers), self.pick(2, 3))))
        made = self.pick(*self.struct_types) if self.struct_types and self.random.random() < 0.4 else None
        results = [annotation(t.type) for t in totals] + ([made.name] if made else [])
        returns = results[0] if len(results) == 1 else f"({', '.join(results)})"
        parameters = self.parameters()
        bundle = self.choose_bundle(parameters)
        self.bundled_header(name, parameters, returns, bundle)
        first = len(self.lines)
        scope = self.start()
        scope.add("i32", "p", assignable=False)
        scope.add("f64", "q", assignable=False)
        if self.struct_param:
            scope.add(self.struct_param, "st", assignable=False)
        returned = [t.name for t in totals]
        for total in totals:
            zero = f"oc.cast({self.pick(0, 5)}, oc.{scalar_of(total.type)})"
            if isinstance(total.type, Tensor):
                zero = f"oc.Vector([{', '.join([zero] * total.type.n)}], dt=oc.{total.type.scalar})"
            self.emit(1, f"{total.name} = {zero}")
        if made:
            # Its whole numbers are summed by the loops, too.
            with self.at_top_level():
                self.emit(1, f"result = {self.of(made, scope)}")
            returned.append("result")
            totals += [self.shared(place, t) for t, place in made.leaves("result") if t in INTEGERS]
        parts = [2, 2, 3, 4] if self.sparse_lines() or self.list_element or self.quantised else [1, 1, 1, 1, 1, 1, 2, 3]
        for _ in range(self.random.choice(parts)):
            self.part(scope, totals)
        self.emit(1, f"return {', '.join(returned)}")
        if bundle:
            self.bundles[name] = bundle
            self.reach_members(first, bundle)
        return name

    def part(self, scope: Scope, totals: list[Shared]) -> None:
        """A loop with what is around it, and what is computed before the next one."""
        if self.random.random() < 0.3 and self.edge_loop(scope, 2):
            return
        kind = self.random.randrange(12)
        if kind == 0:
            # A loop inside a branch is serial.
            with self.at_top_level():
                self.emit(1, f"if {self.condition(scope, 2)}:")
            self.section(scope, totals, 3, serial=True)
        elif kind == 1:
            repeat = self.fresh("s")
            self.emit(1, f"for {repeat} in oc.static(range({self.random.randint(1, 2)})):")
            inner = scope.inner()
            inner.indices.append(repeat)
            self.section(inner, totals, 3, serial=False)
        elif kind == 2 and self.loop_funcs:
            name, mine = self.pick(*self.loop_funcs)
            self.emit(1, f"{name}({', '.join(self.all_names())})")
            self.written += mine
        elif kind in (3, 4, 5):
            self.straight_loop(scope, 2)
        elif kind == 6 and self.quantised:
            self.quantised_loop(scope, 2)
        elif kind in (7, 8) and self.sparse_part(scope, totals, 2):
            pass
        elif self.random.random() < 0.06:
            self.scatter_loop([*self.bins, *totals], scope, 2)
        else:
            self.section(scope, totals, 2, serial=False)
        if self.random.random() < 0.4:
            # What the loops summed, and what is computed between them, flows into the next task.
            t = self.any_type()
            name = self.fresh("v")
            with self.at_top_level():
                self.emit(1, f"{name} = {self.settled(t, scope)}")
            scope.add(t, name, assignable=False)
        if self.random.random() < 0.4:
            total = totals[0]
            name = self.fresh("v")
            self.emit(1, f"{name} = {total.name} {self.pick('+', '^')} oc.cast(1, oc.{total.type})")
            scope.add(total.type, name, assignable=False)

    def loop_func(self) -> tuple[str, list[str]]:
        """A function with a parallel loop of its own, called at the top level of kernels."""
        name = self.fresh("f")
        for text in ("", "", "@oc.func", f"def {name}({', '.join(self.all_names())}):"):
            self.emit(0, text)
        scope = self.start()
        scope.add("i32", "p", assignable=False)
        scope.add("f64", "q", assignable=False)
        mine = self.section(scope, [], 2, serial=False)
        self.written = []
        return name, mine

    # ---- loops ----------------------------------------------------------------------------------------------------------

    def section(self, scope: Scope, totals: list[Shared], base: int, serial: bool) -> list[str]:
        """A parallel loop. What its body writes is read by no other iteration; it reads what earlier loops wrote."""
        r = self.random
        inner = scope.inner()
        over_grid = r.random() < 0.3
        digests = "d_grid" if over_grid else "d_line"
        self.mine = ["grid"] if over_grid else r.sample([n for n in self.outputs if n.startswith("o_")], 2)
        if self.storing and not over_grid and r.random() < 0.7:
            self.mine = list(dict.fromkeys([self.pick(*self.storing)[1], self.mine[0]]))
        if self.aliases["alias"] in self.mine:
            self.mine.append("alias")
        for name in self.written:
            element, shape = self.outputs[name]
            if name not in self.mine and len(shape) == 1:
                inner.arrays.setdefault(element, []).append((name, shape[0]))
        self.readable_parts(inner)
        if not serial and r.random() < 0.2:
            how = self.pick("serialize=True", "block_dim=2", "parallelize=2", "parallelize=1")
            self.emit(base - 1, f"oc.loop_config({how})")
            serial = how == "serialize=True"
        self.target = self.grid_loop(inner, base) if over_grid else self.line_loop(inner, base)
        for name in self.mine:
            inner.add(self.outputs[name][0], f"{name}[{self.target}]", assignable=False)
        if not over_grid and r.random() < 0.7:
            self.own_struct(inner, self.target)
        first = ["i32", self.pick(*self.palette)] + ([self.tensor_type()] if r.random() < 0.3 else [])
        self.emit(base, "acc = oc.cast(0, oc.i32)")
        for t, name in [(t, self.fresh("v")) for t in first]:
            self.emit(base, f"{name} = {self.settled(t, inner)}")
            inner.add(t, name)
        # Not a block: what it defines is stored.
        for _ in range(r.randint(1, 2)):
            self.statement(inner, base, ["for" if serial else "parallel"])
        self.digest(Scope(), inner, base)
        for name in self.mine:
            self.store(name, inner, base)
        self.emit(base, f"{digests}[{self.target}] += acc")
        if not over_grid and r.random() < 0.3:
            self.math_function(inner, base)
        if not over_grid and r.random() < 0.7:
            self.storing_call(inner, base)
        for _ in range(r.randint(0, 2)):
            self.update(self.pick(*totals, *self.bins), inner, base)
        mine, self.mine = self.mine, []
        self.written = list(dict.fromkeys([*mine, *self.written]))
        return mine

    def line_loop(self, inner: Scope, base: int) -> str:
        i, n = self.fresh("i"), self.size
        sources = [name for name in self.outputs if name.startswith("o_")]
        source = self.pick(*sources, *(["sf"] * 3 if self.struct_field else []))
        over = self.pick(f"range({source}.shape[0])", f"range({n})", f"range(p & {n - 1})", f"range(1, {n})", source)
        if self.random.random() < 0.1:
            over = f"range(oc.cast({self.pick(n, f'p & {n - 1}')}, oc.{self.pick(*INTEGERS)}))"
        self.emit(base - 1, f"for {i} in {over}:")
        inner.indices.append(i)
        return i

    def grid_loop(self, inner: Scope, base: int) -> str:
        i, j, k = self.fresh("i"), self.fresh("j"), self.fresh("g")
        n, m = GRID
        (a, b), kind = self.origin, self.random.randrange(6)
        rows, columns = (f"({a}, {a + n})", f"({b}, {b + m})") if self.origin != (0, 0) else (str(n), str(m))
        if kind == 0:
            self.emit(base - 1, f"for {i}, {j} in oc.ndrange(({a + 1}, {a + n}), {columns}):")
        elif kind == 1:
            self.emit(base - 1, f"for {i}, {j} in grid:")
        elif kind < 4:
            self.emit(base - 1, f"for {k} in oc.grouped({self.pick('grid', f'oc.ndrange({rows}, {columns})')}):")
            inner.indices += [f"{k}[0]", f"{k}[1]"]
            return k
        elif kind == 4:
            self.emit(base - 1, f"for {i}, {j} in oc.ndrange({rows}, {columns}, axes=(1, 0)):")
        else:
            one = self.fresh("l")
            self.emit(base - 1, f"for {i}, {j}, {one} in oc.ndrange({rows}, {columns}, (1, 2)):")
            inner.indices.append(one)
        inner.indices += [i, j]
        return f"{i}, {j}"

    def store(self, name: str, scope: Scope, indent: int) -> None:
        element, _ = self.outputs[name]
        scalar = scalar_of(element)
        op = self.pick("=", "+=", "^=", "-=") if scalar in INTEGERS else "="
        place = self.transposed_place(name)
        if isinstance(element, Tensor) and self.random.random() < 0.4:
            place, element = self.entry_target(place, element, scope), scalar
        self.emit(indent, f"{place} {op} {self.settled(element, scope)}")

    def math_function(self, scope: Scope, indent: int) -> None:
        t = self.math
        # The arc tangent of halves is a single.
        name = self.pick(*(n for n in MATH if t != "f16" or n != "atan2"))
        x, y = (self.fresh("v") for _ in range(2))
        for variable in (x, y):
            self.emit(indent, f"{variable} = {self.bounded(self.real(t, scope), t)}")
        argument = MATH[name].format(x=x, y=y, t=t, limit=8.0 if t == "f16" else 100.0)
        self.emit(indent, f"m_{t}[{self.target}] = oc.{name}({argument})")
