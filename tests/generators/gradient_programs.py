"""The text of random programs that have derivatives: loops of all shapes, branches, functions, sums, several tasks.

Owns the text and the shapes of its arrays; `gradient_generator` runs it and measures what it writes. Values stay near one and every function is smooth where it is not meant to have
a kink, so that differences of results can be compared with derivatives. Every location is written by one iteration, or by sums.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

#: Numbers of the arrays beside the one that the parallel loops run over.
WEIGHTS, COUNTS = 5, 6

SMOOTH = ("oc.sin({0})", "oc.cos({0})", "oc.tanh({0})", "oc.sqrt({0} * {0} + 0.5)", "oc.log({0} * {0} + 1.5)", "oc.exp(-{0} * {0})",
          "1.0 / ({0} * {0} + 1.0)", "oc.rsqrt({0} * {0} + 0.7)", "-({0})", "oc.abs({0} + 0.01)", "oc.atan2({0}, 1.3)",
          "oc.asin(0.5 * oc.sin({0}))", "({0} * {0} + 0.3) ** 1.5", "oc.cast(oc.cast({0}, oc.f64), oc.f64)")  # fmt: skip
PAIRS = ("({0} + {1})", "({0} - {1})", "({0} * {1})", "({0} / ({1} * {1} + 1.0))", "oc.min({0}, {1})", "oc.max({0}, {1})",
         "oc.atan2({0}, {1} * {1} + 0.5)", "oc.select({0} > {1}, {0}, 0.5 * {1})", "({0} if {1} > 0.2 else {1})")  # fmt: skip

FUNCS = '''
@oc.func
def mixed(a, b):
    return oc.sin(a) * 0.6 + b * 0.3


@oc.func
def settled(a, b):
    r = 0.5 * a
    for step in range(4):
        r = oc.cos(r) * 0.7 + 0.1 * b
        if r > 0.75:
            r *= a
            break
    return r


@oc.real_func
def shared(a: oc.f64, b: oc.f64) -> oc.f64:
    """Has more than one way out."""
    r = 0.5 * a
    for step in range(3):
        r = oc.tanh(r * b) + 0.2 * a
        if r > 0.4:
            return r * b
    return r
'''


@dataclass
class Names:
    """What an expression may use here."""

    reals: list[str]
    integers: list[str]
    vectors: list[str] = field(default_factory=list)
    #: Names that may be assigned to.
    carried: list[str] = field(default_factory=list)

    def inside(self) -> Names:
        return Names(list(self.reals), list(self.integers), list(self.vectors), list(self.carried))


class GradientProgram:
    """A program by its seed. Kernels take the arrays of `arrays`, by name. Its reals have 64 bits, or are of another type."""

    def __init__(self, seed: int, real: str = "f64"):
        self.seed = seed
        self.type = real
        self.random = random.Random(seed)
        self.size = self.random.choice((1, 3, 7, 12, 19, 33))
        #: Whether arrays are fields; else they are ndarrays.
        self.fields = self.random.random() < 0.4
        self.lines: list[str] = []
        self.fresh = 0
        shapes = {"x": (self.size,), "w": (WEIGHTS,), "y": (self.size,), "z": (self.size, 3), "total": (1,)}
        self.reals = shapes
        self.integers = {"n": (COUNTS,), "row": (self.size + 1,), "link": (COUNTS,)}
        reals = {1: "VEC", 2: "MAT"}
        annotations = {name: reals[len(shape)] for name, shape in shapes.items()} | dict.fromkeys(self.integers, "INTS")
        if self.fields:
            annotations = dict.fromkeys(annotations, "oc.template()")
        #: Names of the kernel's parameters, in order; `p` is a number.
        self.params = [*annotations, "p"]
        signature = ", ".join(f"{name}: {text}" for name, text in annotations.items())
        self.lines += ['"""Made by tests/generators/gradient_programs.py."""', "", "import octants as oc", ""]
        self.lines += ["VEC = oc.types.ndarray(dtype=oc.f64, ndim=1)", "MAT = oc.types.ndarray(dtype=oc.f64, ndim=2)"]
        self.lines += ["INTS = oc.types.ndarray(dtype=oc.i32, ndim=1)", FUNCS, "", "@oc.kernel"]
        self.lines.append(f"def program({signature}, p: oc.i32):")
        self.top()
        if seed % 8 == 5 and "oc.stream_parallel" not in "".join(self.lines):
            self.until()
        if seed % 8 == 3 and "oc.stream_parallel" not in "".join(self.lines):
            self.largest()
        self.text = ("\n".join(self.lines) + "\n").replace("oc.f64", f"oc.{real}")

    # --- words ---------------------------------------------------------------------------------------------------------

    def new(self, stem: str) -> str:
        self.fresh += 1
        return f"{stem}{self.fresh}"

    def pick(self, *choices):
        return self.random.choice(choices)

    def number(self) -> str:
        return f"{self.random.uniform(-1.2, 1.2):.3f}"

    def add(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    # --- expressions ---------------------------------------------------------------------------------------------------

    def at(self, names: Names, extent) -> str:
        """An index into an axis."""
        inside = self.pick(*names.integers)
        if self.random.random() < 0.3:
            inside = f"link[({inside}) % {COUNTS}]"
        return f"({inside} + {self.random.randrange(3)}) % {extent}"

    def leaf(self, names: Names) -> str:
        kind = self.random.random()
        if names.reals and kind < 0.5:
            return self.pick(*names.reals)
        if names.vectors and kind < 0.6:
            vector = self.pick(*names.vectors)
            return self.pick(f"{vector}[{self.random.randrange(2)}]", f"{vector}.norm_sqr()", f"{vector}.dot({vector})")
        if kind < 0.75:
            return f"x[{self.at(names, self.size)}]"
        if kind < 0.9:
            return f"w[{self.at(names, WEIGHTS)}]"
        if kind < 0.94:
            return f"0.1 * {self.pick(*names.integers)}"
        return self.number()

    def real(self, names: Names, depth: int = 2) -> str:
        kind = self.random.random()
        if depth == 0 or kind < 0.2:
            return self.leaf(names)
        if kind < 0.5:
            return self.pick(*SMOOTH).format(self.real(names, depth - 1))
        if kind < 0.9:
            return self.pick(*PAIRS).format(self.real(names, depth - 1), self.real(names, depth - 1))
        # At the top of a kernel the loop of `settled` would be a parallel one.
        called = self.pick("mixed", "shared", *(["settled"] if "i" in names.integers else []))
        return f"{called}({self.real(names, depth - 1)}, {self.real(names, depth - 1)})"

    def bounded(self, names: Names) -> str:
        """A real whose size does not grow with the number of times it is assigned."""
        return self.pick("oc.sin({})", "0.8 * oc.tanh({})", "0.9 * oc.cos({}) + 0.1", "oc.sin({}) * 0.5").format(
            self.real(names)
        )

    def condition(self, names: Names) -> str:
        if self.random.random() < 0.35:
            return f"({self.pick(*names.integers)} + {self.random.randrange(3)}) % {self.random.randrange(2, 4)} == 0"
        text = f"{self.real(names, 1)} {self.pick('<', '>')} {self.number()}"
        return (
            f"({text}) {self.pick('and', 'or')} {self.pick(*names.integers)} < 3"
            if self.random.random() < 0.2
            else text
        )

    def bounds(self, names: Names) -> str:
        integer = self.pick(*names.integers)
        count = f"n[({integer}) % {COUNTS}]"
        return self.pick(
            f"{self.random.randrange(4)}", "p", count, f"{count} - 1", f"{integer} % 4", f"-1, {count}", f"{count} % 3 + 1",
            f"row[{integer} % {self.size}], row[{integer} % {self.size} + 1]", f"oc.min({count}, n[link[0]])", f"({count} * p) // 2",
            f"oc.cast({self.real(names, 1)} * 1.7 + 2.0, oc.i32) % 4", f"oc.abs({integer} - 2) % 5", f"w.shape[0] - {self.random.randrange(2, 5)}",
            f"n[link[({integer}) % {COUNTS}] % {COUNTS}]",
        )  # fmt: skip

    # --- statements ----------------------------------------------------------------------------------------------------

    def assign(self, depth: int, names: Names) -> None:
        kind = self.random.random()
        if names.vectors and kind < 0.2:
            vector = self.pick(*names.vectors)
            if kind < 0.1:
                self.add(depth, f"{vector} = oc.Vector([{self.bounded(names)}, {vector}[0] * 0.5], oc.f64)")
            else:
                self.add(depth, f"{vector}[{self.at(names, 2)}] {self.pick('=', '+=')} 0.3 * {self.bounded(names)}")
            return
        if names.carried and kind < 0.8:
            target = self.pick(*names.carried)
            if self.random.random() < 0.3:
                self.add(depth, f"{target} += 0.2 * {self.bounded(names)}")
            else:
                self.add(depth, f"{target} = {self.bounded(names)}")
            return
        made = self.new("t")
        self.add(depth, f"{made} = {self.real(names)}")
        names.reals.append(made)

    def block(self, depth: int, names: Names, loops: int, in_loop: bool = False) -> None:
        for _ in range(self.random.randrange(1, 4)):
            kind = self.random.random()
            if loops and kind < 0.4:
                self.loop(depth, names, loops - 1)
            elif depth < 6 and 0.4 <= kind < 0.55:
                self.branch(depth, names, loops, in_loop)
            elif in_loop and 0.55 <= kind < 0.62:
                self.add(depth, f"if {self.condition(names)}:")
                self.add(depth + 1, self.pick("break", "continue"))
            else:
                self.assign(depth, names)

    def branch(self, depth: int, names: Names, loops: int, in_loop: bool) -> None:
        self.add(depth, f"if {self.condition(names)}:")
        self.block(depth + 1, names.inside(), max(0, loops - 1), in_loop)
        if self.random.random() < 0.5:
            self.add(depth, "else:")
            self.block(depth + 1, names.inside(), max(0, loops - 1), in_loop)

    def loop(self, depth: int, names: Names, loops: int) -> None:
        inner = names.inside()
        kind = self.random.random()
        if kind < 0.6:
            index = self.new("k")
            inner.integers.append(f"oc.abs({index})")
            self.add(depth, f"for {index} in range({self.bounds(names)}):")
        elif kind < 0.68:
            index = self.new("k")
            inner.integers.append(index)
            self.add(depth, f"for {index} in oc.static(range({self.random.randrange(1, 4)})):")
            self.block(depth + 1, inner, 0)
            return
        elif kind < 0.76:
            a, b = self.new("k"), self.new("k")
            inner.integers += [a, b]
            integer = self.pick(*names.integers)
            self.add(depth, f"for {a}, {b} in oc.ndrange({self.random.randrange(1, 3)}, n[({integer}) % {COUNTS}]):")
        else:
            count = self.new("c")
            self.add(depth, f"{count} = 0")
            condition = f"{count} < {self.random.randrange(1, 5)}"
            if names.carried and self.random.random() < 0.7:
                condition += f" and {self.pick(*names.carried)} {self.pick('<', '>')} {self.number()}"
            elif self.random.random() < 0.5:
                condition = f"{count} < n[({self.pick(*names.integers)}) % {COUNTS}]"
            self.add(depth, f"while {condition}:")
            self.add(depth + 1, f"{count} += 1")
            inner.integers.append(count)
        self.block(depth + 1, inner, loops, in_loop=True)

    # --- tasks ---------------------------------------------------------------------------------------------------------

    def locals(self, depth: int, names: Names) -> None:
        for stem in "uv"[: self.random.randrange(1, 3)]:
            made = self.new(stem)
            self.add(depth, f"{made} = {self.real(names)}")
            names.reals.append(made)
            names.carried.append(made)
        if self.random.random() < 0.3:
            made = self.new("vec")
            self.add(depth, f"{made} = oc.Vector([{self.real(names, 1)}, {self.real(names, 1)}], oc.f64)")
            names.vectors.append(made)
        if self.random.random() < 0.3:
            # A position that walks through links; one from before a parallel loop would be shared by its iterations.
            walker = "q" if depth > 1 else "begin"
            self.add(depth, f"{walker} = link[{self.at(names, COUNTS)}]")
            names.integers.append(walker)

    def task(self, depth: int, names: Names, target: str) -> None:
        names = names.inside()
        names.integers.append("i")
        over = self.pick(
            f"range({self.size})",
            "x",
            "range(x.shape[0])",
            f"range({self.pick(0, 1, 2)} if p > 9 else 0, {self.size})",
        )
        if self.size > 2 and self.random.random() < 0.25:
            # Neighbours at constant distances.
            over = self.pick(f"range(1, {self.size} - 1)", "range(1, x.shape[0] - 1)")
            names.reals += ["x[i - 1]", "x[i]", "x[i + 1]"]
        self.add(depth, f"for i in {over}:")
        body = depth + 1
        self.locals(body, names)
        if self.random.random() < 0.2:
            self.add(body, f"if {self.condition(names)}:")
            self.block(body + 1, names.inside(), 2)
        else:
            self.block(body, names, 3)
        if "q" in names.integers and self.random.random() < 0.6:
            self.add(body, f"for _ in range({self.random.randrange(1, 4)}):")
            self.add(body + 1, f"q = link[q % {COUNTS}]")
            self.add(body + 1, f"for _ in range(n[q % {COUNTS}]):")
            self.assign(body + 2, names.inside())
        if target == "total":
            where = "total[0]"
            if self.random.random() < 0.2:
                # Of equal ones each takes all of the gradient: no two are.
                self.add(body, f"oc.atomic_{self.pick('max', 'min')}({where}, {self.real(names)} + 0.0137 * i)")
            else:
                self.add(body, f"{where} {self.pick('+=', '-=')} {self.real(names)}")
        elif target == "scatter":
            self.add(body, f"z[{self.at(names, self.size)}, {self.random.randrange(3)}] += {self.real(names)}")
        elif target == "row":
            index = self.new("k")
            self.add(body, f"for {index} in range({self.pick('3', 'n[1] % 3')}):")
            inner = names.inside()
            inner.integers.append(index)
            self.add(body + 1, f"z[i, {index}] = {self.real(inner)}")
        elif target == "again":
            # Overwrites what it reads: a tape keeps that.
            self.add(body, f"y[i] = {self.bounded(names)} * y[i] + 0.3 * oc.sin(y[i])")
        else:
            self.add(body, f"y[i] = {self.real(names)}")

    def top(self) -> None:
        names = Names([], ["p"])
        if self.random.random() < 0.35:
            self.locals(1, names)
            names.carried.clear()
            names.vectors.clear()
        targets = [self.pick("y", "y", "row", "scatter")]
        if self.random.random() < 0.5:
            targets.append(
                self.pick("total", "total", "row" if targets[0] != "row" and targets[0] != "scatter" else "total")
            )
        if targets[0] == "y" and self.random.random() < 0.3:
            targets.append("again")
        if len(targets) == 2 and not names.reals and "again" not in targets and self.random.random() < 0.3:
            for target in targets:
                self.add(1, "with oc.stream_parallel():")
                self.task(2, names, target)
            return
        for target in targets:
            self.task(1, names, target)
        if targets[0] == "y" and "again" not in targets and self.random.random() < 0.3:
            self.add(1, "for i in y:")
            self.add(2, f"z[i, 1] += oc.sin(y[i] * y[(i + 1) % {self.size}])")
            self.add(2, "z[i, 2] += y[i] * x[i]")

    def until(self) -> None:
        """A last task with a loop that ends by what it writes: how much a tape keeps of it is counted on copies."""
        names = Names(["y[i]", "z[i, 0]"], ["p", "i"])
        self.add(1, "for i in y:")
        in_memory = self.random.random() < 0.5
        if in_memory:
            # The rows are there again for the next run.
            self.add(2, "end = row[i]")
        count = "row[i]" if in_memory else self.new("c")
        self.add(2, f"{count} = 0")
        condition = f"y[i] {self.pick('<', '>')} {self.number()}"
        self.add(2, f"while {count} < {self.random.randrange(2, 6)} and {condition}:")
        self.add(3, f"{count} += 1")
        self.add(3, f"y[i] = {self.bounded(names)} * y[i] + 0.3 * oc.sin(y[i])")
        if self.random.random() < 0.4:
            self.add(3, f"for _ in range(({count} + {self.random.randrange(3)}) % 3):")
            self.add(4, f"z[i, 0] = 0.5 * z[i, 0] + {self.bounded(names)} * y[i]")
        if in_memory:
            self.add(2, "row[i] = end")

    def largest(self) -> None:
        """A last task with the largest or smallest of some values: its derivative finds that one again, whatever it is made of."""
        names = Names(["x[i]", "y[i]"], ["p", "i"])
        word = self.pick("max", "min")
        update = self.pick("oc.atomic_{0}(total[0], {1})", "total[0] = oc.{0}(total[0], {1})")
        self.add(1, "for i in x:")
        # Of equal ones each takes all of the gradient: no two are.
        self.add(2, update.format(word, f"{self.real(names, 3)} + 0.0137 * i"))
