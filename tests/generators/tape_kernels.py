"""Kernels of random whole programs: their text, and which arrays they use. `tape_programs` launches them.

Kernels have no races: every location that an iteration reads or writes is written by it alone, or by sums.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from gradient_programs import PAIRS, SMOOTH

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
    "member of s": ("global",),
}

ANNOTATIONS = {"array": "R1", "template": "oc.template()", "any": "oc.Tensor", "rows": "R2", "number": "oc.f64", "integer": "oc.i32"}  # fmt: skip

#: Shapes of kernels whose way back needs what they left in the arrays that they write.
KEEPING = ("red_black", "in_order", "swap_ends", "carried", "branch", "until", "permuted", "several", "active", "matrix", "transposed", "extreme", "all_rows",
           "vectors_in_place", "row")  # fmt: skip

#: Shapes of kernels that read what they overwrite.
OVERWRITING = (*KEEPING, "in_place")

#: Where elements are read.
NEIGHBOURS = ("i", "(i + 1) % SIZE", "(i + SIZE - 1) % SIZE", "SIZE - 1 - i")

#: Shapes of kernels that may be launched again and again.
REPEATED = ("in_place", "in_place", "add", "scatter", "total", "map")


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


class TapeKernels:
    """Arrays of a program by its seed, and kernels that use them."""

    def __init__(self, seed: int):
        self.seed = seed
        self.random = random.Random(seed * 7919 + 1)
        self.size = self.pick(2, 4, 4, 5, 6)
        self.fresh = 0
        self.arrays: dict[str, Array] = {}
        self.kernels: list[Kernel] = []
        #: Arrays whose values are constants of derivatives.
        self.constants: set[str] = set()
        #: What the program has, by a word each.
        self.features: set[str] = set()
        #: Arrays whose values the way back of an earlier launch may need: what writes them again is refused, mostly.
        self.needed: set[str] = set()
        #: Whether it may do what a tape refuses.
        self.is_reckless = self.often(0.15)
        #: Whether the tape has bounded memory, and arrays may be overwritten.
        self.is_bounded = seed % 5 in (2, 3) and seed % 16 != 5
        self.make_arrays()

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
        if self.often(0.25):
            self.arrays["s_m"] = Array("s_m", "member of s")
            self.arrays["s_u"] = Array("s_u", "member of s", "vectors")
        if self.often(0.1):
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
        if "rows" in self.arrays and ("rows" not in self.needed or self.recklessly(0.3)):
            shapes |= {"row": 5, "all_rows": 1, "transposed": 1, "grid": 2, "alternate": 1}
        if "s_m" in self.arrays and (not {"s_m", "s_u"} & self.needed or self.recklessly(0.3)):
            shapes |= {"structs": 4}
        if "bare" in self.arrays:
            shapes |= {"lost": 1}
        if "v" in self.arrays and ("v" not in self.needed or self.recklessly(0.3)):
            shapes |= {"vectors": 3, "vectors_in_place": 3, "matrix": 1}
        if any(one.kind == "sparse" for one in self.arrays.values()):
            shapes |= {"active": 2}
        shape = shape or self.random.choices(list(shapes), list(shapes.values()))[0]
        made = Kernel(self.new("k"), is_method=self.uses_object and self.often(0.5))
        given = given or {}
        lines = self.lines()
        fit = [name for name in lines if name != given.get("source")]
        if shape in OVERWRITING:
            fit = self.kept(fit)
        target = given.get("target") or self.fit_to_write(fit)
        source = given.get("source")
        others = [name for name in lines if name != target]
        if shape in ("several", "active"):
            others = self.kept(others)
        if shape == "structs":
            others = [name for name in others if name != "s_m"] or others
        if source is None:
            source = self.fit_to_write(others) if shape in ("several", "active") else self.pick(*others)
        getattr(self, f"_{shape}")(made, target, source)
        made.keeps_results = shape in KEEPING
        self.kernels.append(made)
        return made

    def fit_to_write(self, names: list[str]) -> str:
        """One that nothing needs, which may be a new one; in some programs any."""
        free = [name for name in names if name not in self.needed]
        if (self.is_reckless or self.is_bounded) and self.often(0.3):
            return self.pick(*names)
        return self.pick(*free) if free else self.new_array(self.arrays[self.pick(*names)])

    def kept(self, names: list[str]) -> list[str]:
        """Those of which a tape keeps what kernels overwrite."""
        dense = [name for name in names if self.arrays[name].kind != "sparse"]
        return names if self.is_reckless or not dense else dense

    def new_array(self, like: Array) -> str:
        """One more array, of a kind."""
        name = self.new("x")
        self.arrays[name] = Array(name, "field" if like.kind == "member of s" else like.kind)
        return name

    def recklessly(self, share: float) -> bool:
        return self.is_reckless and self.often(share)

    def over(self, target: str) -> str:
        return self.pick("range(SIZE)", f"range({target}.shape[0])", target)

    def leaves(self, kernel: Kernel, *first: str) -> list[str]:
        """What an expression in a loop over elements may use; the first one is surely in it."""
        if self.often(0.02):
            found = next((one.name for one in kernel.params if one.annotation == "Data"), None)
            if found is None:
                found = self.new("n")
                kernel.params.append(Parameter(found, "data", "data", "Data"))
            first = (*first, f"{found}.part[i]")
        return [*first, *(self.value(kernel) for _ in range(self.random.randrange(1, 4)))]

    def near(self, source: str) -> str:
        return f"{source}[{self.pick(*NEIGHBOURS)}]"

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

    def _structs(self, kernel, target, source):
        """Members of a field of structs, one by one or together."""
        x = self.operand(kernel, source)
        self.operand(kernel, "s_m", True), self.operand(kernel, "s_u", True)
        kernel.lines.append(f"for i in {self.pick('s', 's_m', 'range(SIZE)')}:")
        form = self.random.random()
        if form < 0.4:
            kernel.lines += [
                "    q = s[i]",
                f"    q.m = {self.bounded(self.leaves(kernel, 'q.m', f'{x}[i]', 'q.u[0]'))}",
                f"    q.u = 0.5 * q.u + V2([q.m, {self.value(kernel)}])",
                "    s[i] = q",
            ]
        elif form < 0.7:
            kernel.lines.append(f"    s[i].m = {self.bounded(self.leaves(kernel, 's[i].m', f'{x}[i]'))}")
            kernel.lines.append(f"    s[i].u[{self.random.randrange(2)}] += 0.3 * s[i].m * {self.value(kernel)}")
        else:
            kernel.lines.append(
                f"    s_u[i] = V2([s_m[i], {self.bounded(self.leaves(kernel, f'{x}[i]'))}]) + 0.4 * s[i].u"
            )
            kernel.lines.append(f"    s_m[i] *= {self.bounded(self.leaves(kernel, f'{x}[i]'))}")

    def _lost(self, kernel, target, source):
        """A result in an array without gradients, which this kernel reads again, or a later one."""
        y, x, bare = (
            self.operand(kernel, target, True),
            self.operand(kernel, source),
            self.operand(kernel, "bare", True),
        )
        kernel.lines += ["for i in range(SIZE):", f"    {bare}[i] = {self.bounded(self.leaves(kernel, f'{x}[i]'))}"]
        if self.often(0.7):
            kernel.lines += ["for i in range(SIZE):", f"    {y}[i] += {bare}[i]"]

    def _grid(self, kernel, target, source):
        """All rows at once, in place."""
        m = self.operand(kernel, "rows", True)
        first = [f"{m}[t, i]"] + ([self.near(self.operand(kernel, source))] if self.often(0.5) else [])
        kernel.lines += [
            self.pick(f"for t, i in {m}:", f"for t, i in oc.ndrange({ROWS + 1}, SIZE):"),
            f"    {m}[t, i] = {self.bounded(self.leaves(kernel, *first))}",
        ]

    def _alternate(self, kernel, target, source):
        """From one row to another one, which the launch chooses."""
        m = self.operand(kernel, "rows", True)
        kernel.params += [Parameter("now", "now", "0", "oc.i32"), Parameter("after", "after", "1", "oc.i32")]
        kernel.lines += [
            "for i in range(SIZE):",
            f"    {m}[after, i] {self.pick('=', '+=')} {self.bounded(self.leaves(kernel, f'{m}[now, {self.pick(*NEIGHBOURS)}]'))}",
        ]

    def _active(self, kernel, target, source):
        """A loop over what is active, which is all that was ever written."""
        sparse = self.pick(*(one.name for one in self.arrays.values() if one.kind == "sparse"))
        other = self.fit_to_write([name for name in self.lines() if name != sparse])
        y, x = self.operand(kernel, sparse, True), self.operand(kernel, other, True)
        kernel.lines += [
            f"for i in {y}:",
            f"    {x}[i] {self.pick('=', '+=')} {self.bounded(self.leaves(kernel, f'{y}[i]'))}",
        ]
        if self.recklessly(0.5):
            kernel.lines.append(f"    {y}[i] = {self.bounded(self.leaves(kernel, f'{y}[i]'))}")
