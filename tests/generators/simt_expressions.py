"""Random expressions for programs of blocks, with their meaning in the model: arithmetic, reads of arrays, what lanes do together.

Integers wrap. Reals are small whole numbers, whose sums and products are exact in whatever order; `bound` says how large they get.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import simt_model as model
from simt_model import COMBINE, NUMPY
from simt_statements import Expr, Struct, Tensor

INTEGERS = ("i32", "u32", "i64", "u64")
REALS = ("f32", "f64")
#: Types that are elements only.
NARROW = ("u8", "i8", "i16", "u16", "f16")
SCALARS = INTEGERS + REALS

#: For which lanes a value is the same: each has its own, those of a subgroup, those of a block.
LANE, SUBGROUP, BLOCK = range(3)

#: Reals in variables and arrays are at most this large: whole numbers up to it are exact in 16 bits.
LARGEST = 2000


@dataclass
class Variable:
    name: str
    type: object
    level: int = LANE
    mutable: bool = True


@dataclass
class Array:
    """An array of a program. `key` is its name in the model, `name` what the code here calls it."""

    name: str
    key: str
    element: object
    dims: tuple[int, ...]
    #: "input", "output", "counter", or what a block exchanges by: "shared", "global".
    kind: str
    op: str = ""

    @property
    def size(self) -> int:
        return int(np.prod(self.dims))

    def at(self, index: Expr) -> str:
        """The text of the index of an element with this number."""
        if self.kind == "global":
            return f"block.global_thread_idx() - block.thread_idx() + {index}"
        if len(self.dims) == 1:
            return str(index)
        parts, rest = [], self.size
        for at, extent in enumerate(self.dims):
            rest //= extent
            part = f"{index} // {rest}" if rest > 1 else f"{index}"
            parts.append(f"{part} % {extent}" if at else part)
        return ", ".join(parts)

    def place(self, m, index):
        """Where the element lies in the model."""
        return m.index - m.thread + index if self.kind == "global" else index


def literal(value: int, t: str) -> Expr:
    if t == "i32":
        text = f"({value})" if value < 0 else f"{value}"
    else:
        text = f"oc.{t}({float(value) if t in REALS else value})"
    return Expr(text, t, lambda m: np.full(m.count, value, NUMPY[t]), abs(value))


def cast(e: Expr, t: str) -> Expr:
    if e.type == t:
        return e
    bound = e.bound
    if e.type in (*REALS, "f16") and t not in REALS and t != "f16" and t != "i32":
        e = cast(e, "i32")
    if t in (*REALS, "f16") and e.type in INTEGERS:
        e, bound = binary("&", e, literal(1023, e.type)), 1023
    if t in (*REALS, "f16") and e.type in NARROW and e.type != "f16":
        bound = 1 << 16
    return Expr(f"oc.cast({e}, oc.{t})", t, lambda m: e.run(m).astype(NUMPY[t]), bound)


def small(e: Expr) -> Expr:
    """A real that fits into a variable."""
    if e.type not in (*REALS, "f16") or e.bound <= LARGEST:
        return e
    t = e.type
    return cast(binary("&", cast(e, "i32"), literal(1023, "i32")), t)


BINARY = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor,
    "//": np.floor_divide, "%": np.mod, "<<": np.left_shift, ">>": np.right_shift,
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
}  # fmt: skip
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


def binary(op: str, a: Expr, b: Expr) -> Expr:
    function = BINARY[op]
    bound = a.bound * b.bound if op == "*" else a.bound + b.bound
    t = "u1" if op in COMPARISONS else a.type
    return Expr(f"({a} {op} {b})", t, lambda m: function(a.run(m), b.run(m)), bound)


def called(name: str, function, t, *args: Expr, bound: int = 0, extra: str = "") -> Expr:
    """A call of something that gives what `function(machine, values...)` gives."""
    text = f"{name}({', '.join(map(str, args))}{extra})"
    return Expr(text, t, lambda m: function(m, *(each.run(m) for each in args)), bound)


def least_or_greatest(word: str, a: Expr, b: Expr) -> Expr:
    function = COMBINE[word]
    return called(word, lambda m, x, y: function(x, y), a.type, a, b, bound=max(a.bound, b.bound))


def lazily(text: str, t, condition: Expr, a: Expr, b: Expr) -> Expr:
    """Each lane runs one of both."""

    def run(m):
        holds, mask = condition.run(m), m.mask
        m.mask = mask & holds
        first = a.run(m)
        m.mask = mask & ~holds
        second = b.run(m)
        m.mask = mask
        return np.where(holds, first, second)

    return Expr(text, t, run, max(a.bound, b.bound))


def entry(e: Expr, at: int, text: str, t: str) -> Expr:
    return Expr(f"{e}{text}", t, lambda m: e.run(m)[at], LARGEST)


class Expressions:
    """Random expressions over the variables and arrays that are in scope.

    A program sets `variables`, `arrays`, `modes`, `here` (which lanes are here: all of the block's, of the subgroup's, or some), `threads` (of a block),
    `exchanges` (whether lanes may exchange in this expression), and says by `readable` whether an array may be read by all now.
    """

    random: random.Random
    threads: int
    #: Whether the loop has no threads, and whether what is computed must not depend on the block.
    is_serial = anonymous = in_func = False
    #: Reads of arrays around the one that is made.
    nesting = 0

    def pick(self, found):
        return found[self.random.randrange(len(found))]

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    @property
    def tiles(self) -> int:
        """The largest tile that blocks are whole numbers of: the logarithm of its lanes."""
        return max(n for n in range(6) if self.threads % (1 << n) == 0)

    def number(self, t: str, level: int = LANE, depth: int = 2) -> Expr:
        """An expression of a scalar type that is the same for all lanes of a level."""
        if depth <= 0 or self.chance(0.15):
            return self.leaf(t, level)
        if self.exchanges and level < BLOCK and self.here >= SUBGROUP and self.chance(0.22):
            if (found := self.exchange(t, level, depth - 1)) is not None:
                return small(found)
        if t in REALS:
            return self.real(t, level, depth)
        kind = self.random.random()
        a = self.number(t, level, depth - 1)
        if kind < 0.5:
            return binary(self.pick(["+", "-", "*", "&", "|", "^"]), a, self.number(t, level, depth - 1))
        if kind < 0.6:
            return binary(self.pick(["//", "%"]), a, literal(self.pick([2, 3, 7, 16, 31]), t))
        if kind < 0.7:
            return binary(self.pick(["<<", ">>"]), a, literal(self.random.randrange(1, 9), t))
        if kind < 0.8:
            return least_or_greatest(self.pick(["min", "max"]), a, self.number(t, level, depth - 1))
        if kind < 0.9:
            return self.chosen(a, t, level, depth)
        return cast(self.number(self.pick(SCALARS), level, depth - 1), t)

    def real(self, t: str, level: int, depth: int) -> Expr:
        a, b = self.number(t, level, depth - 1), self.number(t, level, depth - 1)
        kind = self.random.random()
        if kind < 0.35:
            return small(binary(self.pick("+-"), a, b))
        if kind < 0.5:
            return small(binary("*", a, b))
        if kind < 0.7:
            return least_or_greatest(self.pick(["min", "max"]), a, b)
        if kind < 0.85:
            return self.chosen(a, t, level, depth)
        return small(cast(self.number(self.pick(SCALARS), level, depth - 1), t))

    def chosen(self, a: Expr, t: str, level: int, depth: int) -> Expr:
        """One of two values."""
        if self.chance(0.5):
            c, b = self.condition(level, depth - 1), self.number(t, level, depth - 1)

            def select(m, holds, x, y):
                return np.where(holds, x, y)

            return called("oc.select", select, t, c, a, b, bound=max(a.bound, b.bound))
        # What is evaluated by some lanes only has no exchange in it.
        exchanges, self.exchanges = self.exchanges, False
        c = self.condition(level, depth - 1)
        a, b = self.number(t, level, depth - 1), self.number(t, level, depth - 1)
        self.exchanges = exchanges
        return lazily(f"({a} if {c} else {b})", t, c, a, b)

    def condition(self, level: int = LANE, depth: int = 1) -> Expr:
        found = [v for v in self.variables if v.type == "u1" and v.level >= level]
        if found and self.chance(0.3):
            return self.value_of(self.pick(found))
        if depth > 0 and self.chance(0.2):
            a = self.condition(level, depth - 1)
            exchanges, self.exchanges = self.exchanges, False
            b = self.condition(level, depth - 1)
            self.exchanges = exchanges
            word = self.pick(["and", "or"])
            true = Expr("", "u1", lambda m: np.ones(m.count, bool))
            false = Expr("", "u1", lambda m: np.zeros(m.count, bool))
            text = f"({a} {word} {b})"
            return lazily(text, "u1", a, b, false) if word == "and" else lazily(text, "u1", a, true, b)
        if depth > 0 and self.chance(0.1):
            a = self.condition(level, depth - 1)
            return Expr(f"(not {a})", "u1", lambda m: ~a.run(m))
        t = self.pick(SCALARS) if self.chance(0.4) else "i32"
        a = self.number(t, level, depth)
        if t in INTEGERS and self.chance(0.5):
            # What often holds and often does not.
            a = binary("%", a, literal(self.pick([2, 3, 5]), t))
            return binary(self.pick(["==", "!=", ">"]), a, literal(self.random.randrange(2), t))
        return binary(self.pick(COMPARISONS), a, self.number(t, level, depth))

    # ---- what is there -----------------------------------------------------------------------------------------------------

    def value_of(self, v: Variable) -> Expr:
        return Expr(v.name, v.type, lambda m: m.vars[v.name], LARGEST if v.type in REALS else 0)

    def leaf(self, t: str, level: int) -> Expr:
        kind = self.random.random()
        if kind < 0.45:
            found = [v for v in self.variables if v.type == t and v.level >= level]
            if found:
                return self.value_of(self.pick(found))
        if kind < 0.55 and (found := self.entry_of(t, level)):
            return found
        if kind < 0.75 and (found := self.element(t, level)):
            return found
        if kind < 0.9:
            found = [v for v in self.variables if v.type in SCALARS and v.level >= level]
            if found:
                return small(cast(self.value_of(self.pick(found)), t))
        if level == LANE and kind < 0.95:
            return small(cast(self.own_number(), t))
        if t in REALS:
            return literal(self.random.randrange(0 if self.chance(0.7) else -20, 50), t)
        return literal(self.random.randrange(-9 if t[0] == "i" else 0, self.pick([10, 1000])), t)

    def own_number(self) -> Expr:
        if self.is_serial:
            return literal(5, "i32") if self.in_func else Expr("i", "i32", lambda m: m.index)
        found = {"block.thread_idx()": lambda m: m.thread, "subgroup.invocation_id()": lambda m: m.lane}
        if not self.anonymous:
            found["block.global_thread_idx()"] = lambda m: m.index
        name = self.pick(list(found))
        return Expr(name, "i32", found[name])

    def thread(self) -> Expr:
        found = [v for v in self.variables if v.name == "tid"]
        return self.value_of(found[0]) if found else Expr("block.thread_idx()", "i32", lambda m: m.thread)

    def entry_of(self, t: str, level: int) -> Expr | None:
        """An entry of a vector, or of a struct's."""
        found = []
        for v in self.variables:
            if v.level < level:
                continue
            whole = Expr(v.name, v.type, lambda m, name=v.name: m.vars[name])
            if isinstance(v.type, Tensor):
                found.append(whole)
            elif isinstance(v.type, Struct):
                for at, (member, inner) in enumerate(v.type.members):
                    part = Expr(f"{v.name}.{member}", inner, lambda m, whole=whole, at=at: whole.run(m)[at], LARGEST)
                    found.append(part)
        entries = []
        for whole in found:
            if not isinstance(whole.type, Tensor):
                entries.append(whole)
                continue
            for at in range(whole.type.count):
                index = ", ".join(map(str, np.unravel_index(at, whole.type.shape)))
                entries.append(entry(whole, at, f"[{index}]", whole.type.scalar))
        entries = [e for e in entries if e.type == t]
        return self.pick(entries) if entries else None

    def index(self, size: int, level: int) -> Expr:
        """The number of an element."""
        e = self.number("i32", level, 1 if self.chance(0.4) else 0)
        return binary(
            "&" if size & (size - 1) == 0 else "%", e, literal(size - 1 if size & (size - 1) == 0 else size, "i32")
        )

    def element(self, t: str, level: int) -> Expr | None:
        """An element of an array that all may read now."""
        kin = {"f32": ("f32", "f16"), "i32": ("i32", "u8", "i8", "i16", "u16")}.get(t, (t,))
        scalar = [a for a in self.arrays if (a.element in kin) and self.readable(a)]
        tensors = [
            a for a in self.arrays if isinstance(a.element, Tensor) and a.element.scalar == t and self.readable(a)
        ]
        # An index may be read from an array, too, but not forever.
        if not scalar + tensors or self.nesting > 1:
            return None
        array = self.pick(scalar + tensors)
        self.begin_reading(array)
        self.nesting += 1
        index = self.index(array.size, level)
        self.nesting -= 1
        return self.read(array, index, t)

    def read(self, array: Array, index: Expr, t: str) -> Expr:
        """An element as a number of a type; of a vector or a matrix, one of its entries."""
        text = f"{array.name}[{array.at(index)}]"
        if isinstance(array.element, Tensor):
            at = self.random.randrange(array.element.count)
            text += f"[{', '.join(map(str, np.unravel_index(at, array.element.shape)))}]"
            return Expr(text, t, lambda m: m.read(array.key, index.run(m), at), LARGEST)
        return cast(Expr(text, array.element, lambda m: m.read(array.key, array.place(m, index.run(m))), LARGEST), t)

    # ---- what lanes tell each other ----------------------------------------------------------------------------------------

    def lane_of_subgroup(self, level: int = LANE) -> Expr:
        """The number of a lane that is there."""
        t = self.pick(["i32", "i32", "u32"])
        e = self.number(t, level, 1)
        if self.threads % 32 == 0:
            return e if self.chance(0.15) else binary("&", e, literal(31, t))
        if self.threads < 32:
            return binary("%", e, literal(self.threads, t))
        width = Expr(
            f"min(32, {self.threads} - block.thread_idx() // 32 * 32)", "i32", lambda m: m.width
        )  # fmt: skip
        return binary("%", cast(e, "i32"), width)

    def shuffle(self, value: Expr, level: int = LANE) -> Expr:
        """What a value is on another lane: any type."""
        kinds = ["", "up"] if level == LANE else ["broadcast"]
        if self.threads % 32 == 0 and level == LANE:
            kinds += ["down", "xor"]
        elif self.tiles > 0 and level == LANE:
            kinds.append("xor")
        if self.chance(0.1):
            kinds.append("first")
        kind = self.pick(kinds)
        bound = value.bound
        if kind == "first":
            return called(
                "subgroup.broadcast_first",
                lambda m, x: model.shuffled(m, "", x, 0 * m.lane),
                value.type,
                value,
                bound=bound,
            )
        if kind == "broadcast":
            by = self.lane_of_subgroup(SUBGROUP)
            return called(
                "subgroup.broadcast", lambda m, x, n: model.shuffled(m, "", x, n), value.type, value, by, bound=bound
            )
        if kind == "":
            by = self.lane_of_subgroup()
        elif kind == "xor":
            t = self.pick(["i32", "u32"])
            by = binary("&", self.number(t, LANE, 1), literal(min(31, (1 << self.tiles) - 1), t))
        elif self.chance(0.3):
            by = literal(self.pick([0, 1, 2, 5, 16, 31, 32, 40]), self.pick(["i32", "u32"]))
        else:
            t = self.pick(["i32", "u32"])
            by = binary("&", self.number(t, LANE, 1), literal(self.pick([3, 7, 31, 63]), t))
        name = f"subgroup.shuffle{'_' if kind else ''}{kind}"
        return called(name, lambda m, x, n: model.shuffled(m, kind, x, n), value.type, value, by, bound=bound)

    def exchange(self, t: str, level: int, depth: int) -> Expr | None:
        """Something that the lanes of a subgroup do together."""
        whole = self.threads % 32 == 0
        size = self.random.randrange(self.tiles + 1)
        tiled = not whole or level == LANE and self.chance(0.6)
        if level == SUBGROUP and not whole:
            return self.shuffle(self.number(t, LANE, depth), level)
        size = size if tiled else 5
        end, extra = ("_tiled", f", {size}") if tiled else ("", "")
        lanes = 1 << size
        kinds = ["shuffle", "shuffle", "reduce_all"]
        if level == LANE:
            kinds += ["inclusive", "exclusive", "segmented"]
        if t == "i32":
            kinds += ["vote", "vote", "equal", *(["elect"] if level == LANE else [])]
        if t == "u64":
            kinds += ["ballot", "ballot"]
        if t == "u32":
            kinds += ["first_n", *(["lanemask"] if level == LANE else [])]
        kind = self.pick(kinds)
        if kind == "shuffle":
            return self.shuffle(self.number(t, LANE, depth), level)
        if kind == "vote":
            word, function = self.pick([("all_true", np.minimum), ("any_true", np.maximum)])
            e = self.condition(LANE, depth) if self.chance(0.6) else self.number("i32", LANE, depth)

            def vote(m, x):
                return function.reduce((x != 0).reshape(-1, lanes), axis=1).repeat(lanes).astype(np.int32)

            return called(f"subgroup.{word}{end}", vote, t, e, extra=extra)
        if kind == "equal":
            e = binary("&", self.number("i32", LANE, depth), literal(self.pick([0, 1, 256]), "i32"))

            def equal(m, x):
                tiles = x.reshape(-1, lanes)
                return (tiles == tiles[:, :1]).all(axis=1).repeat(lanes).astype(np.int32)

            return called(f"subgroup.all_equal{end}", equal, t, e, extra=extra)
        if kind == "elect":
            return Expr("subgroup.elect()", t, lambda m: (m.lane == 0).astype(np.int32))
        if kind == "ballot":
            e = self.condition(LANE, depth) if self.chance(0.7) else self.number("i32", LANE, depth)
            return called("subgroup.ballot", lambda m, x: model.ballot(m, x != 0), t, e)
        if kind == "first_n":
            n = self.random.randrange(1, 33)
            mask = np.uint64((1 << n) - 1)
            e = self.condition(LANE, depth)
            return called(
                "subgroup.ballot_first_n",
                lambda m, x: (model.ballot(m, x) & mask).astype(np.uint32),
                t,
                e,
                extra=f", {n}",
            )
        if kind == "lanemask":
            return self.lanemask()
        v = self.number(t, LANE, depth)
        ops = ["add", "min", "max"]
        if t in INTEGERS and kind in ("inclusive", "exclusive"):
            ops += ["mul", "and", "or", "xor"]
        op = self.pick(["add"] if kind == "exclusive" and t in REALS else ops)
        bound = v.bound * lanes if op == "add" else v.bound
        if kind == "segmented":
            head = self.condition(LANE, depth) if self.chance(0.5) else self.number("i32", LANE, 1)
            return called(
                f"subgroup.segmented_reduce_{op}{end}", lambda m, x, h: model.segmented(op, x, h != 0, lanes), t, v, head,
                extra=extra, bound=bound,
            )  # fmt: skip
        function = {"reduce_all": model.reduced, "inclusive": model.inclusive, "exclusive": model.exclusive}[kind]
        return called(f"subgroup.{kind}_{op}{end}", lambda m, x: function(op, x, lanes), t, v, extra=extra, bound=bound)

    def lanemask(self) -> Expr:
        lane = binary("&", self.number("i32", LANE, 1), literal(31, "i32"))
        word = self.pick(["lt", "le", "eq", "ge", "gt"])

        def bits(m, at):
            own = np.uint64(1) << at.astype(np.uint64)
            below, all_lanes = own - np.uint64(1), np.uint64(0xFFFFFFFF)
            found = {"lt": below, "le": below | own, "eq": own, "ge": all_lanes ^ below, "gt": all_lanes ^ below ^ own}
            return found[word].astype(np.uint32)

        return called(f"subgroup.lanemask_{word}", bits, "u32", lane)
