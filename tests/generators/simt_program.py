"""Random programs for blocks of threads, well-formed by construction: their text, their arguments, and what they come to in the model.

Between two barriers each array that threads exchange by is used in one way (`modes`): all read it, each thread has elements of its own, all update it atomically, or each
subgroup has a part. A barrier is placed where the way changes; after branches and loops an array is idle until the next barrier unless all paths leave it in the same way.
"""

from __future__ import annotations

import random

import numpy as np
from simt_cooperation import Cooperation
from simt_expressions import BLOCK, INTEGERS, LANE, REALS, SCALARS, SUBGROUP, Array, Variable, literal
from simt_model import NUMPY, Machine
from simt_statements import Expr, Line, Statement, Struct, Tensor, all_statements, render_all

#: Threads of a block that says nothing.
DEFAULT_BLOCK = 128

#: Elements behind those that a program writes.
GUARD = 5

#: Sizes of blocks, common ones more often.
BLOCKS = [1, 7, 16, 16, 32, 32, 32, 33, 48, 64, 64, 64, 96, 128, 128, 256]


class Loop:
    """A parallel loop of a program: how many iterations, how many threads a block has."""

    def __init__(self, kind: str, threads: int, count: int, config: str):
        self.kind, self.threads, self.count, self.config = kind, threads, count, config
        self.header: list[str] = []
        self.body: list[Statement] = []
        self.readable: list[Array] = []


class Program(Cooperation):
    """The program of a seed."""

    def __init__(self, seed: int):
        self.seed, self.random = seed, random.Random(seed)
        self.names = 0
        self.funcs_text, self.types = [], {}
        made = self.random
        self.template = made.randrange(4)
        self.numbers = {"p": made.randrange(-50, 100), "q": made.randrange(0, 8)}
        self.struct = Struct(
            "S0", (("x", self.pick(SCALARS)), ("v", Tensor((made.randrange(2, 4),), self.pick(SCALARS))))
        )
        self.type_name(self.struct.members[1][1])
        self.loops = [self.new_loop() for _ in range(self.pick([1, 1, 1, 2, 2, 3]))]
        if all(loop.kind == "plain" for loop in self.loops):
            self.loops.append(self.new_loop("block"))
        self.most = max(loop.count for loop in self.loops)
        self.numbers["n"] = made.randrange(1, max(2, self.most))
        self.make_arrays()
        for at, loop in enumerate(self.loops):
            self.fill(at, loop)
        self.text = self.render()

    def new_name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def type_name(self, tensor: Tensor) -> str:
        """What the program calls a type of vectors or matrices."""
        word = "vector" if len(tensor.shape) == 1 else "matrix"
        dims = ", ".join(map(str, tensor.shape))
        self.types[tensor.name] = f"oc.types.{word}({dims}, oc.{tensor.scalar})"
        return tensor.name

    def new_loop(self, kind: str | None = None) -> Loop:
        kind = kind or self.random.choices(["block", "subgroup", "plain"], [7, 2, 1.5])[0]
        if kind == "block":
            threads = self.pick(BLOCKS)
            blocks = self.random.randrange(1, 3 if threads > 100 else 4)
            return Loop(kind, threads, threads * blocks, f"block_dim={threads}")
        threads = self.pick([32, 64, 96, DEFAULT_BLOCK, DEFAULT_BLOCK])
        config = "" if threads == DEFAULT_BLOCK and self.chance(0.7) else f"block_dim={threads}"
        if kind == "subgroup":
            count = 32 * self.random.randrange(1, 9)
            return Loop(kind, threads, count, config)
        if self.chance(0.2):
            config = "serialize=True"
        return Loop(kind, threads, self.random.randrange(1, 150), config)

    def make_arrays(self) -> None:
        made = self.random
        self.inputs = [
            Array(f"x{at}", f"x{at}", t, (self.pick([16, 37, 64, 100]),), "input")
            for at, t in enumerate(["i32", *(self.pick(SCALARS) for _ in range(2))])
        ]
        size = (self.most + GUARD,)
        types = ["i64", self.pick(INTEGERS), self.pick(REALS)]
        self.outputs = [Array(f"o{at}", f"o{at}", t, size, "output") for at, t in enumerate(types)]
        padded = (self.most + DEFAULT_BLOCK + GUARD,)
        self.scratch = [(f"g{at}", self.pick(SCALARS), padded) for at in range(made.randrange(1, 3))]
        self.counters = [
            Array(f"c{at}", f"c{at}", self.pick(INTEGERS), (made.randrange(1, 20),), "counter", op)
            for at, op in enumerate(["add", self.pick(["min", "max", "and", "or", "xor"])])
        ]
        #: Of work that blocks claim: how many items, and what comes of each.
        self.items = made.randrange(2, 6)
        self.claims = False
        widest = max(loop.threads for loop in self.loops)
        self.results = Array("r0", "r0", self.pick(SCALARS), (self.items * widest + GUARD,), "result")

    # ---- a loop --------------------------------------------------------------------------------------------------------------

    def fill(self, at: int, loop: Loop) -> None:
        """Makes the body of a loop."""
        self.threads, self.loop = loop.threads, loop
        self.top = self.here = {"block": BLOCK, "subgroup": SUBGROUP, "plain": LANE}[loop.kind]
        self.variables = [Variable("p", "i32", BLOCK, False), Variable("q", "i32", BLOCK, False)]
        self.arrays = list(self.inputs)
        self.modes, self.ready, self.frames, self.exits = {}, set(), [], []
        self.exchanges, self.in_func, self.anonymous, self.depth = True, False, False, 0
        self.is_serial = loop.config.startswith("serialize")
        self.shared_bytes, self.funcs, self.calls = 0, [], 0
        self.written = [a for a in (*self.outputs, *self.counters) if self.chance(0.7) or a.name == "o0"]
        self.arrays += [a for a in (*self.outputs, *self.counters) if a not in self.written]
        for name, t, _ in self.scratch:
            if loop.kind != "plain":
                self.arrays.append(Array(name, name, t, (loop.threads,), "global"))
                self.ready.add(name)
        loop.body = self.prelude(at, loop)
        if loop.kind != "plain" and self.chance(0.1):
            # Blocks that leave as a whole.
            loop.body += self.leave_whole()
        loop.body += self.statements(self.random.randrange(8, 17))
        loop.body += self.epilogue()

    def prelude(self, at: int, loop: Loop) -> list[Statement]:
        """Which thread this is, by various words."""
        count = loop.count
        form = self.pick(["plain", "plain", "argument", "shifted", "ndrange"])
        divisors = [n for n in range(2, count) if count % n == 0]
        if form == "ndrange" and not divisors or loop.config.startswith("serialize"):
            form = "plain"
        own = lambda m: m.index  # noqa: E731
        out = []
        if form in ("plain", "argument"):
            loop.header = [f"for i in range({f'n{at}' if form == 'argument' else count}):"]
            out.append(Line("pass", lambda m, mask: m.assign("i", m.index, mask)))
        elif form == "shifted":
            loop.header = [f"for at in range(3, {count + 3}):"]
            out.append(self.bound("i", Expr("at - 3", "i32", own)))
        else:
            inner = self.pick(divisors)
            lo = self.random.randrange(4)
            bounds = f"({lo}, {lo + inner})" if lo else f"{inner}"
            loop.header = [f"for a, b in oc.ndrange({count // inner}, {bounds}):"]
            text = self.pick([f"a * {inner} + b - {lo}", "block.global_thread_idx()"])
            out.append(self.bound("i", Expr(text, "i32", own)))
        self.variables.append(Variable("i", "i32", LANE, False))
        if not loop.config.startswith("serialize"):
            tid = self.pick(["block.thread_idx()", f"i % {loop.threads}"])
            out.append(self.bound("tid", Expr(tid, "i32", lambda m: m.thread)))
            lane = self.pick(["subgroup.invocation_id()", "tid % 32"])
            out.append(self.bound("lane", Expr(lane, "i32", lambda m: m.lane)))
            out.append(self.bound("bid", Expr(f"i // {loop.threads}", "i32", lambda m: m.block)))
            out.append(self.bound("sub", Expr("tid // 32", "i32", lambda m: m.thread // 32)))
            levels = {"tid": LANE, "lane": LANE, "bid": BLOCK, "sub": SUBGROUP}
            self.variables += [Variable(name, "i32", level, False) for name, level in levels.items()]
        out.append(self.bound("h", literal(1, "i64")))
        self.variables.append(Variable("h", "i64"))
        return out

    def bound(self, name: str, value: Expr) -> Line:
        """A new variable."""
        return Line(f"{name} = {value}", lambda m, mask: m.assign(name, value.run(m), mask))

    def epilogue(self) -> list[Statement]:
        """What the loop has computed goes to outputs."""
        out = []
        for v in [v for v in self.variables if v.type in SCALARS and v.name not in "pqih"]:
            if self.chance(0.7):
                out.append(self.into_hash(self.value_of(v)))
        return [*out, self.stored_output(self.outputs[0], self.value_of(Variable("h", "i64")))]

    # ---- text and model ------------------------------------------------------------------------------------------------------

    def parameters(self) -> dict[str, object]:
        """Names and annotations."""
        found = {a.name: f"oc.types.NDArray[oc.{a.element}, 1]" for a in self.all_arrays()}
        found |= {"p": "oc.i32", "q": "oc.i32", "n": "oc.i32", "t": "oc.template()"}
        return found | {f"n{at}": "oc.i32" for at in range(len(self.loops))}

    def all_arrays(self) -> list[Array]:
        scratch = [Array(name, name, t, size, "scratch") for name, t, size in self.scratch]
        claims = [self.results, Array("k0", "k0", "i32", (1 + GUARD,), "claims")] if self.claims else []
        return [*self.inputs, *self.outputs, *scratch, *self.counters, *claims]

    def render(self) -> str:
        out = ["import octants as oc", "from octants.simt import block, subgroup", ""]
        out += [f"{name} = {text}" for name, text in self.types.items()]
        members = [f"{name}={f'oc.{t}' if isinstance(t, str) else t.name}" for name, t in self.struct.members]
        out += [f"S0 = oc.types.struct({', '.join(members)})", "", ""]
        out += [
            "@oc.func",
            "def affine(a, b):",
            "    return oc.Vector([a[0] * b[0], a[1] * b[0] + b[1]], dt=oc.u32)",
            "",
            "",
        ]
        for func in self.funcs_text:
            func.render(out)
        out += ["@oc.kernel", f"def go({', '.join(f'{name}: {t}' for name, t in self.parameters().items())}):"]
        for loop in self.loops:
            if loop.config:
                out.append(f"    oc.loop_config({loop.config})")
            out += ["    " + text for text in loop.header]
            render_all(loop.body, out, "        ")
        return "\n".join(out) + "\n"

    def bodies(self) -> list[list[Statement]]:
        """Of funcs and loops."""
        return [*(func.body for func in self.funcs_text), *(loop.body for loop in self.loops)]

    def all_statements(self):
        for body in self.bodies():
            yield from all_statements(body)

    def arguments(self) -> dict[str, object]:
        """New arrays and numbers, the same each time."""
        made = np.random.default_rng(self.seed)
        found: dict[str, object] = {}
        for array in self.all_arrays():
            values = made.integers(0 if array.element[0] == "u" else -20, 60, array.size)
            if array.kind == "input" and array.element in INTEGERS and made.random() < 0.3:
                values = values * 1_000_003
            if array.kind == "claims":
                values[:] = 0
            found[array.name] = values.astype(NUMPY[array.element])
        found |= self.numbers | {"t": self.template}
        return found | {f"n{at}": loop.count for at, loop in enumerate(self.loops)}

    def expected(self, keeps_touches: bool = False) -> tuple[dict[str, np.ndarray], tuple[set, set]]:
        """What the arrays hold in the end; and where lanes race, on numbers and on vectors (`Machine.races`)."""
        given = self.arguments()
        arrays = {name: value for name, value in given.items() if isinstance(value, np.ndarray)}
        races: tuple[set, set] = set(), set()
        with np.errstate(all="ignore"):
            for loop in self.loops:
                machine = Machine(loop.count, loop.threads, arrays, keeps_touches)
                for name in ("p", "q", "n"):
                    machine.vars[name] = np.full(loop.count, given[name], np.int32)
                machine.run(loop.body, machine.mask)
                if keeps_touches:
                    for all_races, found in zip(races, machine.races(), strict=True):
                        all_races |= found
        return arrays, races
