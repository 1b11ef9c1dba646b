"""The text of random whole programs that a tape differentiates: kernels of many shapes, and what a host does between their launches.

Owns the text; `tape_generator` runs it on a device and, by `tape_model`, as plain Python. Values stay near one. Kernels have no races: every location that an iteration reads or
writes is written by it alone, or by sums. What the host does may be nothing that a tape can follow: then it is refused.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from gradient_programs import PAIRS, SMOOTH, GradientProgram

#: Parameters that all kernels may read, and how many rows arrays of two axes have.
WEIGHTS, ROWS = 4, 4

#: Kinds of arrays of one axis, and how often each is made.
KINDS = {"ndarray": 5, "field": 4, "tensor": 2, "sparse": 0.4, "member": 1}

#: How an array of one kind may be a parameter; "global" is none.
TAKEN = {
    "ndarray": ("array", "array", "any"),
    "field": ("global", "template", "any"),
    "tensor": ("any",),
    "sparse": ("global", "global", "template"),
    "member": ("global",),
}

ANNOTATIONS = {"array": "R1", "template": "oc.template()", "any": "oc.Tensor", "rows": "R2", "number": "oc.f64", "integer": "oc.i32"}  # fmt: skip

#: Shapes of kernels whose way back needs what they left in the arrays that they write.
KEEPING = ("red_black", "in_order", "swap_ends", "carried", "branch", "until", "permuted", "several", "active", "matrix", "transposed", "extreme", "all_rows",
           "vectors_in_place", "row")  # fmt: skip

#: Shapes of kernels that may be launched again and again.
REPEATED = ("in_place", "in_place", "add", "scatter", "total", "map")

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


@dataclass
class Array:
    """An array of reals by its name."""

    name: str
    kind: str
    #: Of one axis; of vectors; of rows; a single number.
    shape: str = "line"
    has_gradient: bool = True

    @property
    def text(self) -> str:
        """How it is made."""
        needs = ", needs_grad=True, needs_dual=True" if self.has_gradient else ""
        if self.kind == "sparse":
            return "oc.field(oc.f64, needs_grad=True, needs_dual=True)"
        if self.kind == "member":
            return f"oc.types.struct(m=oc.f64, u=V2).field(shape=SIZE{needs}).m"
        made = {"ndarray": "oc.ndarray", "tensor": "oc.tensor"}.get(self.kind, "oc.field")
        if self.kind == "tensor":
            needs = f", needs_grad=True, backend=oc.Backend.{random.Random(self.name).choice(('FIELD', 'NDARRAY'))}"
        dtype, extent = {"line": ("oc.f64", "SIZE"), "rows": ("oc.f64", f"({ROWS + 1}, SIZE)"), "vectors": ("V2", "SIZE"),
                         "single": ("oc.f64", "1")}[self.shape]  # fmt: skip
        return f"{made}({dtype}, {extent}{needs})"


@dataclass
class Parameter:
    """Of a kernel: how it is taken, and what it takes unless a launch says otherwise."""

    name: str
    taken: str
    argument: str
    annotation: str
    written: bool = False


@dataclass
class Kernel:
    """A kernel by what a launch gives it."""

    name: str
    params: list[Parameter] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    #: Whether it belongs to the class of the program's object.
    is_method: bool = False
    #: Names of arrays that it uses, and of those that it writes, all of each of them.
    arrays: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    #: Whether one iteration uses one element, so that arrays may be one.
    is_elementwise: bool = False
    #: Whether the way back needs what it left in the arrays that it writes.
    keeps_results: bool = False

    @property
    def text(self) -> str:
        given = [f"{one.name}: {one.annotation}" for one in self.params]
        depth = "    " * self.is_method
        head = [
            f"{depth}@oc.kernel",
            f"{depth}def {self.name}({', '.join((['self'] if self.is_method else []) + given)}):",
        ]
        return "\n".join(head + [f"{depth}    {line}" for line in self.lines])


class TapeProgram:
    """A program by its seed: its module has `ARRAYS`, those that its inputs are the first values of, and `program()`, which leaves its result in `loss`."""

    def __init__(self, seed: int):
        self.seed = seed
        self.random = random.Random(seed * 7919 + 1)
        self.size = self.pick(2, 4, 4, 5, 6)
        self.fresh = 0
        self.arrays: dict[str, Array] = {}
        self.kernels: list[Kernel] = []
        #: Text of a kernel of `gradient_programs`, with what it needs.
        self.large = ""
        #: Arrays whose values are constants of derivatives.
        self.constants: set[str] = set()
        self.features: set[str] = set()
        #: Kernels that are launched in one place only.
        self.late: list[Kernel] = []
        #: Arrays whose values the way back of an earlier launch may need: what writes them again is refused, mostly.
        self.needed: set[str] = set()
        #: Arrays that the host writes: their first values are no inputs.
        self.set_by_host: set[str] = set()
        #: Whether the host has seen what kernels wrote: it cannot write then.
        self.has_looked = False
        #: What the program does.
        self.body: list[str] = []
        self.steps: list[str] = []
        self.make_arrays()
        self.statements()
        self.measure()
        self.text = self.module()

    # --- words -----------------------------------------------------------------------------------------------------------

    def pick(self, *choices):
        return self.random.choice(choices)

    def often(self, share: float) -> bool:
        return self.random.random() < share

    def new(self, stem: str) -> str:
        self.fresh += 1
        return f"{stem}{self.fresh}"

    def number(self) -> str:
        return f"{self.random.uniform(-1.1, 1.1):.3f}"

    def of_shape(self, shape: str) -> list[str]:
        return [one.name for one in self.arrays.values() if one.shape == shape]

    def lines(self) -> list[str]:
        return [name for name in self.of_shape("line") if name not in self.constants and self.arrays[name].has_gradient]

    # --- arrays ----------------------------------------------------------------------------------------------------------

    def make_arrays(self) -> None:
        kinds = list(KINDS)
        for name in "abcdefgh"[: self.random.randrange(3, 9)]:
            self.arrays[name] = Array(name, self.random.choices(kinds, [KINDS[kind] for kind in kinds])[0])
        if not any(one.kind == "ndarray" for one in self.arrays.values()):
            self.arrays["a"].kind = "ndarray"
        if self.often(0.4):
            self.arrays["rows"] = Array("rows", self.pick("ndarray", "field"), "rows")
        if self.often(0.35):
            self.arrays["v"] = Array("v", self.pick("ndarray", "field"), "vectors")
        if self.often(0.05):
            self.arrays["bare"] = Array("bare", "ndarray", has_gradient=False)
        self.arrays["w"] = Array("w", self.pick("ndarray", "field"))
        self.arrays["total"] = Array("total", self.pick("ndarray", "field"), "single")
        self.arrays["w"].shape = "weights"
        self.uses_object = self.often(0.5)

    # --- operands of kernels ---------------------------------------------------------------------------------------------

    def operand(self, kernel: Kernel, name: str, written: bool = False) -> str:
        """How a kernel's text names an array."""
        array = self.arrays[name]
        kernel.arrays.add(name)
        if written:
            kernel.written.add(name)
        for one in kernel.params:
            if one.argument == name:
                one.written |= written
                return one.name
        taken = self.pick(*TAKEN[array.kind])
        if array.shape != "line":
            taken = "global" if array.kind != "ndarray" else "array"
        if taken == "global":
            return name
        annotation = ANNOTATIONS[taken]
        if taken == "array":
            annotation = {"rows": "R2", "vectors": "oc.types.ndarray(dtype=V2, ndim=1)"}.get(array.shape, "R1")
            if array.shape.count(",") > 1:
                annotation = "R2"
        made = Parameter(self.new("p"), taken if array.shape == "line" else array.shape, name, annotation, written)
        kernel.params.append(made)
        return made.name

    def value(self, kernel: Kernel) -> str:
        """A number that a launch reads from the host, or a parameter of the program."""
        kinds = ["weight"] * 4 + ["argument", "global", "vector", "struct", "table", "literal", "data"]
        kind = self.pick(*kinds, *(["member"] * 4 if kernel.is_method else []))
        if kind == "weight":
            return f"{self.operand(kernel, 'w')}[{self.random.randrange(WEIGHTS)}]"
        if kind == "member":
            return self.pick("self.rate", "self.rate", "self.gains[0]", f"self.act({self.number()})")
        if kind == "global":
            return "RATE"
        if kind == "literal":
            return self.number()
        given = {
            "argument": ("oc.f64", "number"),
            "vector": ("V2", "vector"),
            "struct": ("Pair", "pair"),
            "table": ("R1", "table"),
            "data": ("Data", "data"),
        }[kind]
        annotation, argument = given
        if kind == "argument":
            argument = self.number()
        found = next(
            (one.name for one in kernel.params if one.annotation == annotation and one.argument == argument), None
        )
        if found is None:
            found = self.new("n")
            kernel.params.append(Parameter(found, kind, argument, annotation))
        self.features.add(kind)
        return {"argument": found, "vector": f"{found}[{self.random.randrange(2)}]", "struct": f"{found}.{self.pick('a', 'b')}",
                "table": f"{found}[{self.random.randrange(3)}]", "data": f"{found}.rate"}[kind]  # fmt: skip

    def integer(self, kernel: Kernel, name: str) -> str:
        """An array of integers."""
        found = next((one.name for one in kernel.params if one.argument == name), None)
        if found is None:
            found = self.new("q")
            kernel.params.append(Parameter(found, "integers", name, "I1"))
        self.features.add(name)
        return found

    def real(self, leaves: list[str], depth: int = 2) -> str:
        kind = self.random.random()
        if depth == 0 or kind < 0.15:
            return self.pick(*leaves)
        if kind < 0.45:
            return self.pick(*SMOOTH).format(self.real(leaves, depth - 1))
        if kind < 0.9:
            return self.pick(*PAIRS).format(self.real(leaves, depth - 1), self.real(leaves, depth - 1))
        return f"{self.pick('mixed', 'shared')}({self.real(leaves, depth - 1)}, {self.real(leaves, depth - 1)})"

    def bounded(self, leaves: list[str], depth: int = 2) -> str:
        """A real that does not grow with the number of times that it is assigned."""
        # The first leaf is surely in it.
        inside = f"{self.real(leaves, depth)} + {self.pick('0.7', '1.0', '-0.6')} * {leaves[0]}"
        return self.pick("oc.sin({})", "0.8 * oc.tanh({})", "0.9 * oc.cos({}) + 0.1", "oc.sin({}) * 0.9").format(inside)

    # --- kernels ---------------------------------------------------------------------------------------------------------

    def kernel(self, shape: str | None = None, given: dict | None = None) -> Kernel:
        """A kernel of a shape, between chosen arrays or any."""
        shapes = {"map": 5, "gather": 2, "scatter": 2, "in_place": 5, "add": 3, "permuted": 1, "red_black": 2, "total": 2, "extreme": 1, "in_order": 1,
                  "swap_ends": 1, "several": 2, "loop": 2, "until": 1, "branch": 2, "carried": 1, "forked": 1}  # fmt: skip
        if "rows" in self.arrays and ("rows" not in self.needed or self.often(0.05)):
            shapes |= {"row": 5, "all_rows": 1, "transposed": 1}
        if "v" in self.arrays and ("v" not in self.needed or self.often(0.05)):
            shapes |= {"vectors": 3, "vectors_in_place": 3, "matrix": 1}
        if any(one.kind == "sparse" for one in self.arrays.values()):
            shapes |= {"active": 2}
        shape = shape or self.random.choices(list(shapes), list(shapes.values()))[0]
        made = Kernel(self.new("k"), is_method=self.uses_object and self.often(0.5))
        given = given or {}
        lines = self.lines()
        target = given.get("target") or self.fit_to_write([name for name in lines if name != given.get("source")])
        source = given.get("source")
        others = [name for name in lines if name != target]
        if source is None:
            source = self.fit_to_write(others) if shape in ("several", "active") else self.pick(*others)
        getattr(self, f"_{shape}")(made, target, source)
        made.keeps_results = shape in KEEPING
        self.kernels.append(made)
        return made

    def fit_to_write(self, names: list[str]) -> str:
        """One that nothing needs, mostly."""
        free = [name for name in names if name not in self.needed]
        return self.pick(*(free if free and self.often(0.93) else names))

    def over(self, target: str) -> str:
        return self.pick("range(SIZE)", f"range({target}.shape[0])", target)

    def leaves(self, kernel: Kernel, *first: str) -> list[str]:
        """What an expression in a loop over elements may use; the first one is surely in it."""
        if self.often(0.04):
            found = next((one.name for one in kernel.params if one.annotation == "Data"), None)
            if found is None:
                found = self.new("n")
                kernel.params.append(Parameter(found, "data", "data", "Data"))
            first = (*first, f"{found}.part[i]")
        return [*first, *(self.value(kernel) for _ in range(self.random.randrange(1, 4)))]

    def near(self, source: str) -> str:
        return f"{source}[{self.pick('i', '(i + 1) % SIZE', '(i + SIZE - 1) % SIZE', 'SIZE - 1 - i')}]"

    def _map(self, kernel, target, source):
        y, x = self.operand(kernel, target, True), self.operand(kernel, source)
        at = f"{x}[i]" if (elementwise := self.often(0.4)) else self.near(x)
        kernel.is_elementwise = elementwise
        kernel.lines += [f"for i in {self.over(y)}:", f"    {y}[i] = {self.bounded(self.leaves(kernel, at))}"]

    def _gather(self, kernel, target, source):
        y, x = self.operand(kernel, target, True), self.operand(kernel, source)
        at = f"{x}[{self.integer(kernel, 'link')}[i]]"
        kernel.lines += [
            f"for i in {self.over(y)}:",
            f"    {y}[i] = {self.bounded(self.leaves(kernel, at, self.near(x)))}",
        ]

    def _scatter(self, kernel, target, source):
        y, x = self.operand(kernel, target, True), self.operand(kernel, source)
        where = f"{self.integer(kernel, 'link')}[i]"
        kernel.lines += [
            f"for i in {self.over(x)}:",
            f"    {y}[{where}] {self.pick('+=', '-=')} 0.5 * {self.bounded(self.leaves(kernel, self.near(x)))}",
        ]

    def _in_place(self, kernel, target, source):
        y = self.operand(kernel, target, True)
        first = [f"{y}[i]"] + ([self.near(self.operand(kernel, source))] if self.often(0.5) else [])
        kernel.lines += [f"for i in {self.over(y)}:"]
        depth = "    "
        if self.often(0.25):
            kernel.lines.append(f"    for _ in range({self.pick('2', '3', self.integer(kernel, 'count') + '[i]')}):")
            depth *= 2
        form = self.random.random()
        if form < 0.6:
            kernel.lines.append(f"{depth}{y}[i] = {self.bounded(self.leaves(kernel, *first))}")
        elif form < 0.8:
            kernel.lines.append(f"{depth}{y}[i] *= {self.bounded(self.leaves(kernel, *first))}")
        else:
            kernel.lines.append(f"{depth}t = {self.bounded(self.leaves(kernel, *first))}")
            kernel.lines.append(f"{depth}{y}[i] = 0.6 * {y}[i] + 0.4 * t * t")
        if self.often(0.3):
            kernel.lines.append(f"{depth}{y}[i] = oc.sin({y}[i] * {self.value(kernel)}) + 0.2 * {y}[i]")

    def _add(self, kernel, target, source):
        y, x = self.operand(kernel, target, True), self.operand(kernel, source)
        kernel.lines += [
            f"for i in {self.over(y)}:",
            f"    {y}[i] {self.pick('+=', '-=')} 0.4 * {self.bounded(self.leaves(kernel, self.near(x)))}",
        ]

    def _permuted(self, kernel, target, source):
        y = self.operand(kernel, target, True)
        at = f"{y}[{self.integer(kernel, 'order')}[i]]"
        kernel.lines += ["for i in range(SIZE):", f"    {at} = {self.bounded(self.leaves(kernel, at))}"]

    def _red_black(self, kernel, target, source):
        y = self.operand(kernel, target, True)
        for first, other in self.pick((("2 * i", "2 * i + 1"),), (("2 * i", "2 * i + 1"), ("2 * i + 1", "2 * i"))):
            kernel.lines += [f"for i in range(SIZE // 2):",
                             f"    {y}[{first}] = {self.bounded(self.leaves(kernel, f'{y}[{other}]', f'{y}[{first}]'))}"]  # fmt: skip

    def _total(self, kernel, target, source):
        s, x = self.operand(kernel, "total", True), self.operand(kernel, source)
        kernel.lines += [
            f"for i in {self.over(x)}:",
            f"    {s}[0] {self.pick('+=', '-=')} {self.bounded(self.leaves(kernel, self.near(x)))}",
        ]

    def _extreme(self, kernel, target, source):
        s, x = self.operand(kernel, "total", True), self.operand(kernel, source)
        # Of equal ones each takes all of the gradient: no two are.
        kernel.lines += [f"for i in {self.over(x)}:",
                         f"    oc.atomic_{self.pick('max', 'min')}({s}[0], {self.bounded(self.leaves(kernel, f'{x}[i]'))} + 0.0137 * i)"]  # fmt: skip

    def _in_order(self, kernel, target, source):
        y, x = self.operand(kernel, target, True), self.operand(kernel, source)
        kernel.lines += ["for _ in range(1):", f"    for i in range(1, SIZE):",
                         f"        {y}[i] = {self.bounded(self.leaves(kernel, f'{y}[i - 1]', f'{y}[i]', f'{x}[i]'))}"]  # fmt: skip

    def _swap_ends(self, kernel, target, source):
        y = self.operand(kernel, target, True)
        kernel.lines += ["for i in range(SIZE // 2):", f"    t = {y}[i]", f"    u = {y}[SIZE - 1 - i]",
                         f"    {y}[i] = {self.pick('u', '0.6 * u + 0.4 * t', 'oc.sin(u) * t')}",
                         f"    {y}[SIZE - 1 - i] = {self.pick('t', '0.5 * (t - u)', 't * t - u')}"]  # fmt: skip

    def _several(self, kernel, target, source):
        """More than one parallel loop."""
        self._map(kernel, target, source)
        getattr(self, f"_{self.pick('in_place', 'scatter', 'add', 'red_black', 'total')}")(kernel, source, target)
        kernel.is_elementwise = False

    def _loop(self, kernel, target, source):
        y, x = self.operand(kernel, target, True), self.operand(kernel, source)
        bound = self.pick("3", f"{self.integer(kernel, 'count')}[i]", f"{self.integer(kernel, 'link')}[i] + 1")
        kernel.lines += [f"for i in {self.over(y)}:", f"    u = {x}[i]", f"    for k in range({bound}):",
                         f"        u = {self.bounded(self.leaves(kernel, 'u', f'{x}[(i + k) % SIZE]'))}"]  # fmt: skip
        if self.often(0.3):
            kernel.lines += [
                f"        if u > {self.number()}:",
                f"            {self.pick('break', 'continue', 'u *= 0.5')}",
            ]
        kernel.lines.append(f"    {y}[i] {self.pick('=', '+=')} 0.7 * u")

    def _until(self, kernel, target, source):
        y = self.operand(kernel, target, True)
        kernel.lines += [f"for i in {self.over(y)}:", "    n = 0", f"    while n < 3 and {y}[i] {self.pick('<', '>')} {self.number()}:", "        n += 1",
                         f"        {y}[i] = {self.bounded(self.leaves(kernel, f'{y}[i]'))}"]  # fmt: skip

    def _branch(self, kernel, target, source):
        y, x = self.operand(kernel, target, True), self.operand(kernel, source)
        kernel.lines += [f"for i in {self.over(y)}:", f"    if {self.pick(f'{x}[i] > {self.number()}', f'{y}[i] < {self.number()}', 'i % 2 == 0', self.integer(kernel, 'flag') + '[i] == 1')}:",
                         f"        {y}[i] = {self.bounded(self.leaves(kernel, f'{x}[i]', f'{y}[i]'))}"]  # fmt: skip
        if self.often(0.5):
            kernel.lines += [
                "    else:",
                f"        {y}[i] {self.pick('=', '+=', '*=')} {self.bounded(self.leaves(kernel, f'{x}[i]'))}",
            ]

    def _carried(self, kernel, target, source):
        """A sum that one iteration carries along all others."""
        y, x = self.operand(kernel, target, True), self.operand(kernel, source)
        kernel.lines += ["for _ in range(1):", f"    u = {self.value(kernel)}", "    for i in range(SIZE):", f"        u = {self.bounded(self.leaves(kernel, 'u', f'{x}[i]'))}",
                         f"        {y}[i] = u"]  # fmt: skip

    def _forked(self, kernel, target, source):
        y, x, s = self.operand(kernel, target, True), self.operand(kernel, source), self.operand(kernel, "total", True)
        kernel.lines += ["with oc.stream_parallel():", "    for i in range(SIZE):", f"        {y}[i] = {self.bounded(self.leaves(kernel, f'{x}[i]'))}",
                         "with oc.stream_parallel():", "    for i in range(SIZE):", f"        {s}[0] += {self.bounded(self.leaves(kernel, f'{x}[i]'))}"]  # fmt: skip

    def _row(self, kernel, target, source):
        """A step from one row to the next."""
        m = self.operand(kernel, "rows", True)
        if kernel.is_method and self.often(0.5):
            now = "self.t"
        else:
            now = self.new("t")
            kernel.params.append(Parameter(now, "time", "0", "oc.i32"))
        first = [f"{m}[{now}, {self.pick('i', '(i + 1) % SIZE')}]", f"{m}[{now}, i]"]
        if self.often(0.3):
            first.append(self.near(self.operand(kernel, source)))
        kernel.lines += [
            "for i in range(SIZE):",
            f"    {m}[{now} + 1, i] {self.pick('=', '=', '+=')} {self.bounded(self.leaves(kernel, *first))}",
        ]

    def _all_rows(self, kernel, target, source):
        m = self.operand(kernel, "rows", True)
        kernel.lines += [
            "for i in range(SIZE):",
            f"    for t in range({ROWS}):",
            f"        {m}[t + 1, i] = {self.bounded(self.leaves(kernel, f'{m}[t, i]'))}",
        ]

    def _transposed(self, kernel, target, source):
        m = self.operand(kernel, "rows", True)
        kernel.lines += [f"for i, j in oc.ndrange({min(ROWS + 1, self.size)}, {min(ROWS + 1, self.size)}):", "    if i < j:", f"        t = {m}[i, j]",
                         f"        {m}[i, j] = {self.pick(f'{m}[j, i]', f'oc.sin({m}[j, i]) + 0.3 * t')}", f"        {m}[j, i] = {self.pick('t', 't * t')}"]  # fmt: skip

    def _vectors(self, kernel, target, source):
        y, v = self.operand(kernel, target, True), self.operand(kernel, "v")
        kernel.lines += [
            "for i in range(SIZE):",
            f"    u = {v}[i]",
            f"    {y}[i] = {self.bounded(self.leaves(kernel, 'u[0]', self.pick('u.dot(u)', 'u.norm_sqr()', 'u[1]')))}",
        ]

    def _vectors_in_place(self, kernel, target, source):
        v, x = self.operand(kernel, "v", True), self.operand(kernel, source)
        kernel.lines.append("for i in range(SIZE):")
        form = self.random.random()
        if form < 0.3:
            kernel.lines.append(
                f"    {v}[i] = V2([{self.bounded(self.leaves(kernel, f'{v}[i][1]', f'{x}[i]'))}, 0.7 * {v}[i][0]])"
            )
        elif form < 0.6:
            kernel.lines.append(
                f"    {v}[i][{self.pick(0, 1, 'i % 2')}] = {self.bounded(self.leaves(kernel, f'{v}[i][0]', f'{v}[i][1]'))}"
            )
        elif form < 0.8:
            kernel.lines.append(
                f"    {v}[i] += 0.3 * V2([{self.bounded(self.leaves(kernel, f'{x}[i]'))}, {self.number()}])"
            )
        else:
            kernel.lines.append(f"    {v}[i] *= {self.bounded(self.leaves(kernel, f'{x}[i]'))}")

    def _matrix(self, kernel, target, source):
        y, v = self.operand(kernel, target, True), self.operand(kernel, "v", True)
        kernel.lines += ["for i in range(SIZE):", f"    m = M2([[{self.value(kernel)}, {y}[i]], [0.3, {self.bounded(self.leaves(kernel, f'{v}[i][0]'))}]])",
                         f"    {v}[i] = 0.6 * (m @ {v}[i])", f"    {y}[i] = oc.sin({v}[i].sum() + m.trace())"]  # fmt: skip

    def _active(self, kernel, target, source):
        """A loop over what is active, which is all that was ever written."""
        sparse = self.pick(*(one.name for one in self.arrays.values() if one.kind == "sparse"))
        other = self.pick(*(name for name in self.lines() if name != sparse))
        y, x = self.operand(kernel, sparse, True), self.operand(kernel, other, True)
        kernel.lines += [
            f"for i in {y}:",
            f"    {x}[i] {self.pick('=', '+=')} {self.bounded(self.leaves(kernel, f'{y}[i]'))}",
        ]
        if self.often(0.5):
            kernel.lines.append(f"    {y}[i] = {self.bounded(self.leaves(kernel, f'{y}[i]'))}")

    # --- what the host does ----------------------------------------------------------------------------------------------

    def add(self, text: str, depth: int = 1) -> None:
        self.body.append("    " * depth + text)

    def argument(self, kernel: Kernel, one: Parameter, taken: set[str]) -> str:
        """What a launch gives for a parameter: now and then another array, or another number."""
        if one.taken in ("array", "template", "any") and self.often(0.2):
            kinds = {"array": ("ndarray",), "template": ("field", "sparse"), "any": ("ndarray", "field", "tensor")}[
                one.taken
            ]
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
            if one.taken == "time":
                argument = time or str(self.random.randrange(ROWS))
            given.append(argument)
        self.add(
            f"{'thing.' if kernel.is_method else ''}{kernel.name}({', '.join(given + ([stream] if stream else []))})",
            depth,
        )

    def change(self, depth: int = 1) -> None:
        """The host changes something that launches read."""
        if "checkpoint" in self.features and self.often(0.9):
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
            if (target in self.needed or self.has_looked) and self.often(0.9):
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
            self.add(f"{target}.from_numpy(held({source}.to_numpy()))")
        elif kind == "element":
            self.add(f"{target}[{self.random.randrange(self.size)}] = {self.number()}")
        else:
            name = self.pick("link", "count", "flag")
            if name in self.features and self.often(0.9):
                return
            self.features.add(name)
            self.add(f"{name}.from_numpy(np.full(SIZE, 1, dtype=np.int32))")

    def steps_in_time(self) -> None:
        """A loop of the host over rows."""
        if "rows" in self.needed and self.often(0.9):
            return
        kernels = [self.kernel("row")]
        if self.often(0.4):
            kernels.append(self.kernel(self.pick(*REPEATED) if self.often(0.9) else None))
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
        elif others:
            scratch = self.fit_to_write(others)
            kernels = [
                self.kernel("map", {"target": scratch, "source": now}),
                self.kernel(self.pick("in_place", "add", "branch", "red_black"), {"target": now, "source": scratch}),
            ]
        if self.often(0.3):
            kernels.append(self.kernel("total", {"source": now}))
        if self.often(0.25):
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
        target = self.fit_to_write(self.lines())
        use = Kernel(self.new("k"))
        y, s = self.operand(use, target, True), self.operand(use, name)
        use.lines += [f"for i in {y}:", f"    {y}[i] = {y}[i] / ({s}[0] + 1.0)"]
        self.kernels.append(use)
        self.launch(use, exact=True)

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
        target = self.pick(*(name for name in self.lines() if self.arrays[name].kind == "ndarray"))
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
        self.add(f"out_of_large(g_y, g_z, g_total, {target})")

    def statements(self) -> None:
        shares = {"launch": 10, "again": 3, "change": 4, "write": 2, "swap": 2, "rollout": 2, "left_out": 1, "replaced": 1, "look": 1, "flags": 1, "stream": 1, "large": 0.6,
                  "repeat": 1.5, "made": 0.7}  # fmt: skip
        if "rows" in self.arrays:
            shares["time"] = 3
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
                one = self.kernel(self.pick(*REPEATED) if self.often(0.9) else None)
                self.add(f"for turn in range({self.pick(2, 3, 4)}):")
                if self.often(0.5):
                    self.change(2)
                self.launch(one, 2, "turn" if self.often(0.5) else None)
            elif kind == "made":
                self.made()
            elif kind == "time":
                self.steps_in_time()

    def fit_again(self) -> list[Kernel]:
        """Kernels that may be launched once more."""
        return [one for one in self.kernels if not one.written & self.needed or self.often(0.05)]

    def swap(self) -> None:
        """Arrays of an object take turns, or names of the host."""
        arrays = [name for name in self.lines() if self.arrays[name].kind == "ndarray"]
        if len(arrays) < 2:
            return
        free = [name for name in arrays if name not in self.needed]
        one, other = self.random.sample(free if len(free) > 1 else arrays, 2)
        self.features.add("swap")
        made = Kernel(self.new("k"), is_method=True)
        self.uses_object = True
        made.lines += [
            "for i in range(SIZE):",
            f"    self.now[i] {self.pick('=', '+=')} {self.bounded(self.leaves(made, self.near('self.before')))}",
        ]
        self.kernels.append(made)
        self.add(f"thing.now, thing.before = {one}, {other}")
        self.launch(made, exact=True)
        self.needed.add(other)
        third = [name for name in arrays if name not in self.needed and name != one]
        if third and self.often(0.8):
            self.add(f"thing.now, thing.before = {self.pick(*third)}, thing.now")
            self.launch(made, exact=True)
            self.needed.add(one)
        elif self.often(0.3):
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

    def look(self) -> None:
        """The host reads a result: what it makes of it is constant."""
        self.features.add("held")
        self.has_looked = True
        source = self.pick(*self.lines())
        made = Kernel(self.new("k"))
        y = self.operand(made, self.fit_to_write(self.lines()), True)
        made.params.append(Parameter("seen", "seen", "seen", "oc.f64"))
        made.lines += [f"for i in {self.over(y)}:", f"    {y}[i] = {self.bounded([f'{y}[i]', 'seen'])}"]
        self.late.append(made)
        self.add(f"seen = held(1.07 * float({source}.to_numpy()[{self.random.randrange(self.size)}]) + 0.013)")
        self.launch(made, exact=True)

    def measure(self) -> None:
        """All that has values ends in the loss."""
        for name, array in list(self.arrays.items()):
            if name in self.constants or not array.has_gradient or name == "w" or self.often(0.2):
                continue
            made = Kernel(self.new("measure"))
            x = self.operand(made, name)
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
            made.lines += [over, f"    loss[0] += {weight} * {term}"]
            if array.kind == "sparse":
                made.lines[0] = "for i in range(SIZE):"
            self.kernels.append(made)
            self.launch(made, exact=True)

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
