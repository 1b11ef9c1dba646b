"""The text of random whole programs that a tape differentiates: kernels of many shapes (`tape_kernels`), and what a host does between their launches.

Owns the text; `tape_generator` runs it on a device and, by `tape_model`, as plain Python. Values stay near one. What the host does may be nothing that a tape can follow: then it is
refused.
"""

from __future__ import annotations

import random

from gradient_programs import GradientProgram
from tape_kernels import REPEATED, ROWS, WEIGHTS, Array, Kernel, Parameter, TapeKernels

HEAD = '''"""Made by tests/generators/tape_programs.py."""

import dataclasses

import numpy as np

import octants as oc

R1, R2 = oc.types.ndarray(dtype=oc.f64, ndim=1), oc.types.ndarray(dtype=oc.f64, ndim=2)
I1 = oc.types.ndarray(dtype=oc.i32, ndim=1)
V2, M2 = oc.types.vector(2, oc.f64), oc.types.matrix(2, 2, oc.f64)
Pair = oc.types.struct(a=oc.f64, b=oc.f64)
RATE = 0.6


@oc.func
def mixed(a, b):
    return oc.sin(a) * 0.6 + b * 0.3


@oc.real_func
def shared(a: oc.f64, b: oc.f64) -> oc.f64:
    if a > 0.4:
        return oc.tanh(b) + 0.2 * a
    return 0.5 * a * b


def held(value):
    """A number that the host has read: a constant."""
    return value


def left_out(function, written):
    """Calls a function that writes constants."""
    oc.ad.no_grad(function)()


@dataclasses.dataclass
class Data:
    part: R1
    rate: oc.f64


'''


class TapeProgram(TapeKernels):
    """A program by its seed: its module has `ARRAYS`, those that its inputs are the first values of, and `program()`, which leaves its result in `loss`."""

    def __init__(self, seed: int):
        super().__init__(seed)
        #: Text of a kernel of `gradient_programs`, with what it needs.
        self.large = ""
        #: Kernels that are launched in one place only.
        self.late: list[Kernel] = []
        #: Arrays that the host writes: their first values are no inputs.
        self.set_by_host: set[str] = set()
        #: Whether the host has seen what kernels wrote: it cannot write then.
        self.has_looked = False
        #: What the program does.
        self.body: list[str] = []
        self.statements()
        self.measure()
        self.text = self.module()

    # --- what the host does ----------------------------------------------------------------------------------------------

    def add(self, text: str, depth: int = 1) -> None:
        self.body.append("    " * depth + text)

    def argument(self, kernel: Kernel, one: Parameter, taken: set[str]) -> str:
        """What a launch gives for a parameter: now and then another array, or another number."""
        # Each instance of a kernel has globals from when it was compiled, and which instances there are is nobody's promise.
        has_globals = any("RATE" in line for line in kernel.lines)
        if one.taken in ("array", "template", "any") and self.often(0.2) and not has_globals:
            of_template = ("field", "sparse") if self.is_reckless else ("field",)
            kinds = {"array": ("ndarray",), "template": of_template, "any": ("ndarray", "field", "tensor")}[one.taken]
            others = [
                name
                for name in self.lines()
                if self.arrays[name].kind in kinds and (kernel.is_elementwise or name not in taken)
            ]
            if others:
                return self.pick(*others)
        if one.taken == "argument" and self.often(0.3):
            return self.number()
        return one.argument

    def launch(
        self, kernel: Kernel, depth: int = 1, time: str | None = None, exact: bool = False, stream: str = ""
    ) -> None:
        taken = set(kernel.arrays)
        given = []
        if depth > 1:
            # It is launched once more.
            self.needed |= kernel.arrays - kernel.written
        else:
            self.needed |= kernel.arrays - (set() if kernel.keeps_results else kernel.written)
        for one in kernel.params:
            argument = one.argument if exact else self.argument(kernel, one, taken)
            if argument != one.argument and argument in self.arrays:
                if one.written and argument in self.needed:
                    argument = one.argument
                elif not one.written:
                    self.needed.add(argument)
            taken.add(argument)
            if one.taken in ("now", "after"):
                # Rows take turns in a loop of the host.
                turn = time if time in ("t", "turn") else str(self.random.randrange(2))
                argument = f"{turn} % 2" if one.taken == "now" else f"1 - {turn} % 2"
            if one.taken == "time":
                argument = time or str(self.random.randrange(ROWS))
            given.append(argument)
        self.add(
            f"{'thing.' if kernel.is_method else ''}{kernel.name}({', '.join(given + ([stream] if stream else []))})",
            depth,
        )

    def change(self, depth: int = 1) -> None:
        """The host changes something that launches read."""
        if "checkpoint" in self.features and not self.recklessly(0.4):
            # Its steps run again on the way back.
            return
        choices = (
            ["pair", "vector", "data"]
            + ["object", "object", "gains", "time"] * self.uses_object
            + ["global"] * (self.random.random() < 0.4)
        )
        choices += ["table"] * (self.random.random() < 0.25)
        kind = self.pick(*choices)
        text = {
            "pair": f"pair.{self.pick('a', 'b')} = {self.number()}",
            "vector": f"vector[{self.random.randrange(2)}] = {self.number()}",
            "data": self.pick(
                f"data.rate = {self.number()}", f"data = dataclasses.replace(data, rate={self.number()})"
            ),
            "object": f"thing.rate = {self.number()}",
            "gains": f"thing.gains[0] = {self.number()}",
            "time": f"thing.t = {self.random.randrange(ROWS)}",
            "global": f"RATE = {self.number()}",
            "table": self.pick(
                f"table[{self.random.randrange(3)}] = {self.number()}",
                "table *= 0.9",
                f"table = np.array([{self.number()}, {self.number()}, 0.3])",
            ),
        }[kind]
        self.features.add(kind)
        self.add(text, depth)

    def write(self) -> None:
        """The host writes an array, or has it copied."""
        lines = self.lines()
        target = self.fit_to_write(lines)
        source = self.pick(*(name for name in lines if name != target))
        forms = ["copy"] * 10 + ["fill", "constants", "round_trip", "element", "zeros", "integers"]
        kind = self.pick(*forms)
        of_kind = [
            name
            for name in lines
            if name != target
            and (self.arrays[name].kind in ("ndarray", "tensor")) == (self.arrays[target].kind in ("ndarray", "tensor"))
        ]
        if kind not in ("copy", "integers"):
            if (target in self.needed or self.has_looked) and not self.recklessly(0.4):
                return
            self.set_by_host.add(target)
        if kind == "copy" and self.arrays[target].kind != "tensor" and of_kind:
            source = self.pick(*of_kind)
            if self.arrays[source].kind == "tensor":
                return
            self.add(f"{target}.copy_from({source})")
        elif kind == "copy":
            return
        elif kind == "fill":
            self.add(f"{target}.fill({self.number()})")
        elif kind == "zeros":
            self.add(f"{target}.fill(0)")
        elif kind == "constants":
            self.add(f"{target}.from_numpy(np.linspace({self.number()}, {self.number()}, SIZE))")
        elif kind == "round_trip":
            self.add(f"{target}.from_numpy(held(1.03 * {source}.to_numpy() + 0.01))")
        elif kind == "element":
            self.add(f"{target}[{self.random.randrange(self.size)}] = {self.number()}")
        else:
            name = self.pick("link", "count", "flag")
            if name in self.features and not self.recklessly(0.4):
                return
            self.features.add(name)
            self.add(f"{name}.from_numpy(np.full(SIZE, 1, dtype=np.int32))")

    def steps_in_time(self) -> None:
        """A loop of the host over rows."""
        if "rows" in self.needed and not self.recklessly(0.4):
            return
        kernels = [self.kernel("row")]
        if self.often(0.4):
            kernels.append(self.kernel(None if self.recklessly(0.5) else self.pick(*REPEATED)))
        self.add(f"for t in range({ROWS}):")
        if self.uses_object:
            self.add("thing.t = t", 2)
        if self.often(0.3):
            self.change(2)
            if self.body[-1].strip().startswith("thing.t"):
                self.body.pop()
        for one in kernels:
            self.launch(one, 2, "t")
        self.needed.add("rows")

    def rollout(self) -> None:
        """Steps of a checkpoint."""
        lines = [name for name in self.lines() if self.arrays[name].kind != "sparse"]
        if len(lines) < 2:
            return
        now = self.fit_to_write(lines)
        others = [name for name in lines if name != now]
        name = self.new("step")
        self.features.add("checkpoint")
        state = [now]
        kernels = []
        if self.often(0.4) and (
            same := [other for other in others if self.arrays[other].kind == self.arrays[now].kind != "tensor"]
        ):
            after = self.fit_to_write(same)
            kernels = [self.kernel("map", {"target": after, "source": now})]
            state = [f"({now}, {after})"]
        elif self.often(0.4) and (speeds := [name for name in others if name not in self.needed]):
            # A place and a speed.
            speed = self.pick(*speeds)
            kernels = [
                self.kernel("add", {"target": speed, "source": now}),
                self.kernel(self.pick("add", "in_place"), {"target": now, "source": speed}),
            ]
            # Now and then one of them is forgotten.
            state = [now] if self.recklessly(0.4) else [now, speed]
        elif others:
            scratch = self.fit_to_write(others)
            kernels = [
                self.kernel("map", {"target": scratch, "source": now}),
                self.kernel(self.pick("in_place", "add", "branch", "red_black"), {"target": now, "source": scratch}),
            ]
        if self.often(0.3):
            kernels.append(self.kernel("total", {"source": now}))
        if self.recklessly(0.5):
            # It may write what is not listed, and is refused then.
            kernels.append(self.kernel())
        if self.often(0.15):
            kernels.append(self.flags(now))
            kernels.append(self.kernel("branch", {"target": now, "source": self.pick(*others)}))
        self.add(f"def {name}(number):")
        if self.uses_object and self.often(0.6):
            self.add("thing.rate = 0.3 + 0.1 * number", 2)
            self.add(f"thing.t = number % {ROWS}", 2)
        elif self.often(0.3):
            self.add("pair.a = 0.2 * number", 2)
        for one in kernels:
            self.launch(one, 2, f"number % {ROWS}", exact=True)
        self.add("")
        many = self.pick("", "", ", snapshots=1", ", snapshots=2", ", snapshots=3")
        self.add(f"oc.ad.checkpoint({name}, {self.pick(1, 2, 3, 5, 7)}, [{', '.join(state)}]{many})")

    def flags(self, source: str) -> Kernel:
        """A kernel that writes integers, which others branch or loop by."""
        made = Kernel(self.new("k"))
        x = self.operand(made, source)
        unused = [name for name in ("flag", "count") if name not in self.features]
        flag = self.integer(made, self.pick(*(unused or ["flag", "count"])))
        made.lines += [
            "for i in range(SIZE):",
            f"    if {x}[i] > {self.number()}:",
            f"        {flag}[i] = 1",
            "    else:",
            f"        {flag}[i] = 0",
        ]
        self.kernels.append(made)
        return made

    def left_out(self) -> None:
        """A statistic without derivatives, which a later kernel uses."""
        name = self.new("stat")
        self.arrays[name] = Array(name, self.pick("ndarray", "field"), "single")
        self.constants.add(name)
        self.features.add("no_grad")
        source = self.pick(*self.lines())
        made = Kernel(self.new("k"))
        s, x = self.operand(made, name, True), self.operand(made, source)
        made.lines += [f"for i in {x}:", f"    {s}[0] += {x}[i] * {x}[i]"]
        self.late.append(made)
        inner = self.new("statistic")
        self.add(f"def {inner}():")
        self.launch(made, 2, exact=True)
        self.add("")
        self.add(f"left_out({inner}, [{name}])")
        again = self.often(0.2)
        target = self.fit_to_write(self.kept(self.lines()))
        use = Kernel(self.new("k"))
        y, s = self.operand(use, target, True), self.operand(use, name)
        use.lines += [f"for i in {y}:", f"    {y}[i] = {y}[i] / ({s}[0] + 1.0)"]
        self.kernels.append(use)
        self.launch(use, exact=True)
        if again:
            self.add(f"left_out({inner}, [{name}])")

    def replaced(self) -> None:
        """A function with gradients of its own, which are the right ones."""
        arrays = [name for name in self.lines() if self.arrays[name].kind == "ndarray"]
        if len(arrays) < 2:
            return
        y = self.fit_to_write(arrays)
        x = self.pick(*(name for name in arrays if name != y))
        self.needed.add(x)
        name, factor = self.new("replaced"), self.new("factor")
        adds = self.often(0.4)
        self.features.add("replaced")
        self.large += f"""
@oc.kernel
def {name}_there(x: R1, y: R1, factor: oc.f64):
    for i in x:
        y[i] {"+=" if adds else "="} factor * oc.sin(x[i])


@oc.kernel
def {name}_back(x: R1, y: R1, factor: oc.f64):
    for i in x:
        x.grad[i] += factor * oc.cos(x[i]) * y.grad[i]
        {"pass" if adds else "y.grad[i] = 0.0"}


@oc.ad.grad_replaced
def {name}(x, y, factor):
    {name}_there(x, y, factor)


@oc.ad.grad_for({name})
def {name}_gradient(x, y, factor):
    {name}_back(x, y, factor)

"""
        self.add(f"{factor} = {self.number()}")
        self.add(f"{name}({x}, {y}, {factor})")

    def large_kernel(self) -> None:
        """A kernel of the generator of kernels."""
        if self.large or self.features & {"large"}:
            return
        made = GradientProgram(self.random.randrange(100_000))
        if made.fields or made.size > 12:
            return
        self.features.add("large")
        text = made.text.replace("def program(", "def large(")
        start = text.index("VEC =")
        self.large += (
            text[start:]
            .replace("VEC", "LARGE_VEC")
            .replace("MAT", "LARGE_MAT")
            .replace("INTS", "LARGE_INTS")
            .replace("def mixed", "def mixed_")
            .replace("def shared", "def shared_")
        )
        for name, shape in made.reals.items():
            self.arrays[f"g_{name}"] = Array(f"g_{name}", "ndarray", f"large {', '.join(map(str, shape))},")
        numbers = random.Random(self.seed)
        rows = [0]
        for _ in range(made.size):
            rows.append(rows[-1] + numbers.randrange(-1, 4))
        integers = {
            "g_n": [numbers.randrange(5) for _ in range(6)],
            "g_row": rows,
            "g_link": [numbers.randrange(6) for _ in range(6)],
        }
        for name, values in integers.items():
            self.large += f"\n{name} = oc.ndarray(oc.i32, {len(values)})\nINTEGERS.append(({name}, {values}))\n"
        arguments = [f"g_{name}" if name != "p" else str(numbers.randrange(5)) for name in made.params]
        arrays = [name for name in self.lines() if self.arrays[name].kind == "ndarray"]
        target = self.pick(*arrays)
        self.needed.add(target)
        self.large += f"""

@oc.kernel
def into_large(x: R1, y: R1):
    for i in y:
        y[i] = oc.sin(x[i % SIZE] + 0.3 * i)


@oc.kernel
def out_of_large(y: R1, z: R2, total: R1, x: R1):
    for i in y:
        x[i % SIZE] += 0.3 * oc.sin(y[i] + z[i, 0] - z[i, 2]) + 0.1 * oc.tanh(total[0])

"""
        self.add(f"into_large({target}, g_x)")
        self.add(f"large({', '.join(arguments)})")
        self.add(f"out_of_large(g_y, g_z, g_total, {self.fit_to_write(arrays)})")

    def statements(self) -> None:
        shares = {"launch": 10, "again": 3, "change": 4, "write": 2, "swap": 2, "rollout": 2, "left_out": 1, "replaced": 1, "look": 1, "flags": 1, "stream": 1, "large": 0.6,
                  "repeat": 1.5, "made": 0.7, "views": 1.5}  # fmt: skip
        if "rows" in self.arrays:
            shares["time"] = 3
        if self.is_bounded:
            # Functions with gradients of their own are refused.
            shares |= {"rollout": 0, "replaced": 0, "loop": 6}
        for _ in range(self.random.randrange(4, 9)):
            kind = self.random.choices(list(shares), list(shares.values()))[0]
            if kind == "launch":
                self.launch(self.kernel())
            elif kind == "again" and (fit := self.fit_again()):
                self.launch(self.pick(*fit))
            elif kind == "change":
                self.change()
                if (fit := self.fit_again()) and self.often(0.6):
                    self.launch(self.pick(*fit))
            elif kind == "write":
                self.write()
            elif kind == "swap":
                self.swap()
            elif kind == "rollout":
                self.rollout()
            elif kind == "left_out":
                self.left_out()
            elif kind == "replaced":
                self.replaced()
            elif kind == "look":
                self.look()
            elif kind == "flags":
                self.launch(self.flags(self.pick(*self.lines())))
                self.launch(self.kernel("branch"))
            elif kind == "stream":
                self.features.add("stream")
                self.add("oc.sync()")
                for _ in range(self.random.randrange(1, 3)):
                    self.launch(self.kernel(), stream="qd_stream=STREAM")
                self.add("STREAM.synchronize()")
            elif kind == "large":
                self.large_kernel()
            elif kind == "repeat":
                one = self.kernel(None if self.recklessly(0.5) else self.pick(*REPEATED))
                self.add(f"for turn in range({self.pick(2, 3, 4)}):")
                if self.often(0.5):
                    self.change(2)
                self.launch(one, 2, "turn" if self.often(0.5) else None)
            elif kind == "loop":
                self.loop()
            elif kind == "made":
                self.made()
            elif kind == "views":
                self.views()
            elif kind == "time":
                self.steps_in_time()

    def loop(self) -> None:
        """Kernels that overwrite what others of the loop, and those before it, have read."""
        taken = [*self.kernels, *(self.kernel(self.pick(*REPEATED)) for _ in range(2))]
        self.add(f"for turn in range({self.pick(2, 3)}):")
        for _ in range(self.random.randrange(2, 5)):
            self.launch(self.pick(*taken), 2, "turn" if self.often(0.5) else None)

    def fit_again(self) -> list[Kernel]:
        """Kernels that may be launched once more."""
        if self.is_bounded:
            return list(self.kernels)
        return [one for one in self.kernels if not one.written & self.needed or self.recklessly(0.3)]

    def swap(self) -> None:
        """Arrays of an object take turns, or names of the host."""
        arrays = [name for name in self.lines() if self.arrays[name].kind == "ndarray"]
        if len(arrays) < 2:
            return
        free = [name for name in arrays if name not in self.needed]
        if len(free) < 2 and not self.recklessly(0.5):
            return
        one, other = self.random.sample(free if len(free) > 1 else arrays, 2)
        self.features.add("swap")
        made = Kernel(self.new("k"), is_method=True)
        self.uses_object = True
        made.lines += [
            "for i in range(SIZE):",
            f"    self.now[i] {self.pick('=', '+=')} {self.bounded(self.leaves(made, self.near('self.before')))}",
        ]
        (self.kernels if self.is_reckless else self.late).append(made)
        self.add(f"thing.now, thing.before = {one}, {other}")
        self.launch(made, exact=True)
        self.needed.add(other)
        third = [name for name in arrays if name not in self.needed and name != one]
        if third and self.often(0.8):
            self.add(f"thing.now, thing.before = {self.pick(*third)}, thing.now")
            self.launch(made, exact=True)
            self.needed.add(one)
        elif self.recklessly(0.5):
            self.add("thing.now, thing.before = thing.before, thing.now")
            self.launch(made, exact=True)
        if self.often(0.4):
            self.add(f"data = Data({self.pick(one, other)}, {self.number()})")

    def made(self) -> None:
        """Arrays that the program makes on its way."""
        use = Kernel(self.new("k"))
        source, name = self.pick(*self.lines()), self.new("made")
        x = self.operand(use, source)
        use.params.append(Parameter("made", "made", name, "R1"))
        use.lines += ["for i in range(SIZE):", f"    made[i] = {self.bounded(self.leaves(use, self.near(x)))}"]
        back = Kernel(self.new("k"))
        y = self.operand(back, self.fit_to_write(self.lines()), True)
        back.params.append(Parameter("made", "made", name, "R1"))
        back.lines += [
            "for i in range(SIZE):",
            f"    {y}[i] {self.pick('=', '+=')} {self.bounded(self.leaves(back, 'made[i]'))}",
        ]
        self.add(f"{name} = oc.ndarray(oc.f64, SIZE, needs_grad=True, needs_dual=True)")
        self.launch(use, exact=True)
        self.launch(back, exact=True)
        self.late += [use, back]

    def views(self) -> None:
        """Parts of arrays, of one or of two."""
        arrays = [name for name in self.lines() if self.arrays[name].kind == "ndarray"]
        self.features.add("views")
        made = Kernel(self.new("k"))
        made.params = [Parameter("y", "view", "", "oc.BufferView", True), Parameter("x", "view", "", "oc.BufferView")]
        made.lines += [f"for i in {self.pick('y', 'range(y.shape[0])')}:", f"    y[i] {self.pick('=', '+=')} {self.bounded(self.leaves(made, 'x[i]'))}"]  # fmt: skip
        self.late.append(made)
        for _ in range(self.random.randrange(1, 4)):
            target = self.fit_to_write(arrays)
            source = self.pick(*arrays)
            half = self.size // 2
            first, second = self.pick((0, half), (half, 0), (self.size - half, 0), (0, 0))
            if source == target and first == second or target in self.needed and not self.recklessly(0.4):
                continue
            given = [f"{target}[{first} : {first + half}]", f"{source}[{second} : {second + half}]"]
            self.add(f"{made.name}({', '.join(given + [self.argument(made, one, set()) for one in made.params[2:]])})")
            self.needed.add(source)

    def look(self) -> None:
        """The host reads a result: what it makes of it is constant."""
        self.features.add("held")
        self.has_looked = True
        source = self.pick(*self.lines())
        made = Kernel(self.new("k"))
        y = self.operand(made, self.fit_to_write(self.kept(self.lines())), True)
        made.params.append(Parameter("seen", "seen", "seen", "oc.f64"))
        made.lines += [f"for i in {self.over(y)}:", f"    {y}[i] = {self.bounded([f'{y}[i]', 'seen'])}"]
        self.late.append(made)
        self.add(f"seen = held(1.07 * float({source}.to_numpy()[{self.random.randrange(self.size)}]) + 0.013)")
        self.launch(made, exact=True)

    def measure(self) -> None:
        """All that has values ends in the loss, by a kernel each or by one for all."""
        together = Kernel(self.new("measure")) if self.often(0.7) else None
        for name, array in list(self.arrays.items()):
            if name in self.constants or not array.has_gradient or name == "w" or self.often(0.2):
                continue
            made = together or Kernel(self.new("measure"))
            x = self.operand(made, name)
            if all(one.name != "loss" for one in made.params):
                made.params.append(Parameter("loss", "loss", "loss", "R1"))
            factor = self.number()
            if array.shape in ("line", "single") or array.shape.startswith("large") and array.shape.count(",") == 1:
                term, over = f"({x}[i] + 0.3 * {x}[i] * {x}[i])", f"for i in {x}:"
            elif array.shape == "vectors":
                term, over = f"({x}[i][0] - {x}[i][1] * {x}[i][0])", f"for i in {x}:"
            else:
                term, over = f"({x}[i, j] - {x}[i, j] * {x}[i, j] * 0.5)", f"for i, j in {x}:"
            at = "i, j" if "i, j" in over else "i"
            weight = f"({factor} + 0.1 * i)" if at == "i" else f"({factor} + 0.1 * i - 0.07 * j)"
            over = "for i in range(SIZE):" if array.kind == "sparse" else over
            made.lines += [over, f"    loss[0] += {weight} * {term}"]
            if not together:
                self.late.append(made)
                self.launch(made, exact=True)
        if together and together.lines:
            self.late.append(together)
            self.launch(together, exact=True)

    # --- the text --------------------------------------------------------------------------------------------------------

    def module(self) -> str:
        kernels = self.kernels + self.late
        text = [HEAD, f"SIZE = {self.size}", "INTEGERS = []"]
        for one in self.arrays.values():
            made = one.text if not one.shape.startswith(("weights", "large")) else None
            if one.shape == "weights":
                made = f"oc.{one.kind}(oc.f64, {WEIGHTS}, needs_grad=True, needs_dual=True)"
            if one.shape.startswith("large"):
                made = f"oc.ndarray(oc.f64, ({one.shape[6:]}), needs_grad=True, needs_dual=True)"
            if one.kind == "member of s":
                made = f"s.{one.name[2:]}"
                if one.name == "s_m":
                    text.append(
                        "s = oc.types.struct(m=oc.f64, u=V2).field(shape=SIZE, needs_grad=True, needs_dual=True)"
                    )
            text.append(f"{one.name} = {made}")
            if one.kind == "sparse":
                text.append(f"oc.root.pointer(oc.i, SIZE).place({one.name}, {one.name}.grad, {one.name}.dual)")
        text.append("loss = oc.ndarray(oc.f64, 1, needs_grad=True, needs_dual=True)")
        numbers = random.Random(self.seed + 5)
        order = list(range(self.size))
        numbers.shuffle(order)
        integers = {"link": [numbers.randrange(self.size) for _ in order], "order": order, "count": [numbers.randrange(4) for _ in order],
                    "flag": [numbers.randrange(2) for _ in order]}  # fmt: skip
        for name, values in integers.items():
            text += [f"{name} = oc.ndarray(oc.i32, SIZE)", f"INTEGERS.append(({name}, {values}))"]
        if "stream" in self.features:
            text.append("STREAM = oc.create_stream()")
        text += [self.large, ""]
        methods = [one for one in kernels if one.is_method]
        text += ["\n\n" + one.text for one in kernels if not one.is_method]
        if self.uses_object:
            text += ["\n\n@oc.data_oriented", "class Thing:", "    def __init__(self):", "        self.rate, self.t = 0.5, 0", "        self.gains = [0.4, 0.2]",
                     "        self.now = self.before = None", "", "    @oc.func", "    def act(self, u):", "        return oc.tanh(u) * self.rate + 0.2"]  # fmt: skip
            text += ["\n" + one.text for one in methods]
        names = [one.name for one in self.arrays.values() if one.has_gradient and one.name not in self.constants]
        first = next(
            one.name
            for one in self.arrays.values()
            if one.kind == "ndarray" and one.shape == "line" and one.has_gradient
        )
        text += ["\n", f"ARRAYS = [{', '.join(names)}]", f"CONSTANTS = [{', '.join(sorted(self.constants))}]",
                 f"SPARSE = [{', '.join(one.name for one in self.arrays.values() if one.kind == 'sparse')}]", "", "", "def program():", "    global RATE",
                 f"    data = Data({first}, 0.7)", "    pair = Pair(a=0.8, b=-0.4)", "    vector = oc.Vector([0.5, -0.7], oc.f64)", "    table = np.array([0.9, -0.3, 0.6])",
                 "    RATE = 0.6", *(["    thing = Thing()"] if self.uses_object else []), *self.body]  # fmt: skip
        return "\n".join(text) + "\n"
