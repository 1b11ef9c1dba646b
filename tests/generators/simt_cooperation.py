"""Random statements of programs for blocks: what each thread does alone, what subgroups do, what blocks do; and in which way arrays are used between two barriers."""

from __future__ import annotations

import numpy as np
import simt_model as model
from simt_control import Control
from simt_expressions import (
    BLOCK,
    INTEGERS,
    LANE,
    LARGEST,
    NARROW,
    REALS,
    SCALARS,
    SUBGROUP,
    Array,
    Variable,
    binary,
    called,
    cast,
    literal,
    small,
)
from simt_model import NUMPY
from simt_statements import Expr, If, Line, Statement, Store, Struct, Tensor

#: Bytes of shared arrays of a loop.
MOST_SHARED = 24_000


class Cooperation(Control):
    """Statements of one line, or of a few that belong together."""

    # ---- variables -----------------------------------------------------------------------------------------------------------

    def declared(self, value: Expr, level: int = LANE, kind: str = "", mutable: bool = True) -> Line:
        """A new variable with this value."""
        name = self.new_name("v")
        value = small(value)
        self.variables.append(Variable(name, value.type, level, mutable))
        return Line(f"{name} = {value}", lambda m, mask: m.assign(name, value.run(m), mask), kind, (name, value.type))

    def level_here(self) -> int:
        """For which lanes a new value is the same."""
        return min(self.here, self.pick([LANE, LANE, LANE, SUBGROUP, BLOCK]))

    def declare(self) -> list[Statement]:
        level = self.level_here()
        if self.chance(0.1):
            return [self.declared(self.condition(level, 2), level)]
        return [self.declared(self.number(self.pick(SCALARS), level, 3), level)]

    def assign(self) -> list[Statement]:
        found = [v for v in self.variables if v.mutable and v.level <= self.here and v.type in (*SCALARS, "u1")]
        if not found:
            return self.declare()
        v = self.pick(found)
        if v.type == "u1":
            value = self.condition(v.level, 2)
        elif v.type in INTEGERS and self.chance(0.4):
            op = self.pick(["+", "-", "*", "^", "&", "|"])
            value = self.number(v.type, v.level, 2)
            whole = binary(op, self.value_of(v), value)
            return [Line(f"{v.name} {op}= {value}", lambda m, mask: m.assign(v.name, whole.run(m), mask))]
        else:
            value = small(self.number(v.type, v.level, 3))
        return [Line(f"{v.name} = {value}", lambda m, mask: m.assign(v.name, value.run(m), mask))]

    def into_hash(self, e: Expr) -> Line:
        value = binary("+", binary("*", Expr("h", "i64", lambda m: m.vars["h"]), literal(31, "i64")), cast(e, "i64"))
        return Line(f"h = {value}", lambda m, mask: m.assign("h", value.run(m), mask))

    def hash(self) -> list[Statement]:
        if not any(v.name == "h" for v in self.variables):
            return self.assign()
        return [self.into_hash(self.number(self.pick(SCALARS), LANE, 2))]

    # ---- vectors, matrices, structs --------------------------------------------------------------------------------------------

    def tensor(self, t: Tensor) -> Expr:
        """A value of this type."""
        found = [v for v in self.variables if v.type == t]
        kind = self.random.random()
        if found and kind < 0.4:
            v = self.pick(found)
            whole = Expr(v.name, t, lambda m: m.vars[v.name])
            if self.here >= SUBGROUP and self.exchanges and self.chance(0.5):
                return self.exchanged(whole)
            return whole
        arrays = [a for a in self.arrays if a.element == t and self.readable(a)]
        if arrays and kind < 0.7:
            array = self.pick(arrays)
            self.begin_reading(array)
            index = self.index(array.size, LANE)
            text = f"{array.name}[{array.at(index)}]"
            return Expr(text, t, lambda m: m.read(array.key, array.place(m, index.run(m))))
        parts = [small(self.number(t.scalar, LANE, 1)) for _ in range(t.count)]
        if len(t.shape) == 1:
            text = f"oc.Vector([{', '.join(map(str, parts))}], dt=oc.{t.scalar})"
        else:
            columns = t.shape[1]
            rows = [f"[{', '.join(map(str, parts[at : at + columns]))}]" for at in range(0, t.count, columns)]
            text = f"oc.Matrix([{', '.join(rows)}], dt=oc.{t.scalar})"
        return Expr(text, t, lambda m: [part.run(m) for part in parts])

    def exchanged(self, whole: Expr) -> Expr:
        """A vector, matrix or struct of another lane, or a scan of vectors."""
        is_vector = isinstance(whole.type, Tensor) and whole.type.scalar in INTEGERS
        if is_vector and self.threads % 32 == 0 and self.chance(0.3):
            op, kind = self.pick(["add", "min", "max"]), self.pick(["inclusive", "reduce_all"])
            size = self.random.randrange(6)
            function = {"inclusive": model.inclusive, "reduce_all": model.reduced}[kind]
            return called(
                f"subgroup.{kind}_{op}_tiled",
                lambda m, x: function(op, x, 1 << size),
                whole.type,
                whole,
                extra=f", {size}",
            )
        return self.shuffle(whole)

    def tensor_type(self) -> Tensor:
        t = Tensor(self.pick([(2,), (3,), (2, 2)]), self.pick(SCALARS))
        self.type_name(t)
        return t

    def compound(self) -> list[Statement]:
        """A vector, a matrix or a struct begins, or an entry of one changes."""
        kind = self.random.random()
        found = [v for v in self.variables if isinstance(v.type, (Tensor, Struct)) and v.mutable]
        if found and kind < 0.45:
            return [self.entry_assigned(self.pick(found))]
        if found and kind < 0.65 and self.here >= SUBGROUP:
            v = self.pick(found)
            return [self.declared(self.exchanged(Expr(v.name, v.type, lambda m: m.vars[v.name])), kind="exchange")]
        if kind < 0.85:
            return [self.declared(self.tensor(self.tensor_type()))]
        number, vector = small(self.number(self.struct.members[0][1], LANE, 2)), self.tensor(self.struct.members[1][1])
        text = f"S0(x={number}, v={vector})"
        return [self.declared(Expr(text, self.struct, lambda m: [number.run(m), vector.run(m)]))]

    def entry_assigned(self, v: Variable) -> Line:
        t, name, path = v.type, v.name, []
        if isinstance(t, Struct):
            at = self.random.randrange(2)
            path, (member, t) = [at], t.members[at]
            name = f"{name}.{member}"
        if isinstance(t, Tensor):
            at = self.random.randrange(t.count)
            path = [*path, at]
            name = f"{name}[{', '.join(map(str, np.unravel_index(at, t.shape)))}]"
            t = t.scalar
        value = small(self.number(t, LANE, 2))

        def run(m, mask):
            def changed(whole, path, new):
                if not path:
                    return new
                return [changed(part, path[1:], new) if at == path[0] else part for at, part in enumerate(whole)]

            m.assign(v.name, changed(m.vars[v.name], path, value.run(m)), mask)

        return Line(f"{name} = {value}", run)

    # ---- what a thread writes alone ------------------------------------------------------------------------------------------

    def stored_output(self, array: Array, value: Expr) -> Line:
        return Line(f"{array.name}[i] = {value}", lambda m, mask: m.write(array.key, m.index, value.run(m), mask))

    def output(self) -> list[Statement]:
        found = [a for a in self.written if a.kind == "output" and a.name != "o0"]
        if not found or self.in_func or self.anonymous:
            return self.assign()
        array = self.pick(found)
        value = small(self.number(array.element, LANE, 2))
        if array.element in REALS or self.chance(0.5):
            return [self.stored_output(array, value)]
        return [
            Line(f"{array.name}[i] += {value}", lambda m, mask: m.update("add", array.key, m.index, value.run(m), mask))
        ]

    def counter(self) -> list[Statement]:
        found = [a for a in self.written if a.kind == "counter"]
        if not found or self.in_func:
            return self.assign()
        return [self.updated(self.pick(found))]

    def updated(self, array: Array, op: str = "", kind: str = "") -> Line:
        """An atomic update of any element."""
        op = op or array.op
        index, value = self.index(array.size, LANE), small(self.number(array.element, LANE, 2))
        element = f"{array.name}[{array.at(index)}]"
        text = f"oc.atomic_{op}({element}, {value})"
        if op == "add" and self.chance(0.5):
            text = f"{element} += {value}"

        def run(m, mask):
            m.update(op, array.key, array.place(m, index.run(m)), value.run(m), mask)

        return Line(text, run, kind)

    def fence(self) -> list[Statement]:
        return [Line(self.pick(["block.mem_fence()", "subgroup.mem_fence()"]), lambda m, mask: None)]

    # ---- arrays that threads exchange by -------------------------------------------------------------------------------------

    def readable(self, array: Array) -> bool:
        if array.kind not in ("shared", "global"):
            return True
        return array.key in self.ready and self.modes.get(array.key, "read") == "read"

    def begin_reading(self, array: Array) -> None:
        if array.kind in ("shared", "global"):
            self.modes[array.key] = "read"

    def exchange_arrays(self) -> list[Array]:
        return [a for a in self.arrays if a.kind in ("shared", "global")]

    def declare_shared(self) -> list[Statement]:
        threads = self.threads
        shapes = [(threads,), (threads,), (2 * threads,), (threads + 3,), (self.random.randrange(1, 9),), (32,)]
        shapes += [(n, threads // n) for n in (2, 4, 8) if threads % n == 0 and threads > n]
        shapes += [(2, 3, threads), (threads // 4, 2, 2)] if threads % 4 == 0 and threads < 200 else []
        kind = self.random.random()
        t = self.pick(SCALARS) if kind < 0.65 else self.pick(NARROW) if kind < 0.8 else self.tensor_type()
        array = Array(self.new_name("sh"), "", t, self.pick(shapes), "shared")
        array.key = array.name
        scalars = [t] if isinstance(t, str) else [t.scalar] * t.count
        size = sum(np.dtype(NUMPY[scalar]).itemsize for scalar in scalars) * array.size
        if self.shared_bytes + size > MOST_SHARED:
            return [self.sync()]
        self.shared_bytes += size
        self.arrays.append(array)
        shape = str(array.dims) if len(array.dims) > 1 or self.chance(0.5) else str(array.dims[0])
        text = f"{array.name} = block.SharedArray({shape}, {f'oc.{t}' if isinstance(t, str) else t.name})"
        out = [Line(text, lambda m, mask: m.declare(array.key, array.size, scalars), "declare")]
        if self.chance(0.8):
            out += self.first_written(array)
        return out

    def value_for(self, array: Array) -> Expr:
        t = array.element
        if isinstance(t, Tensor):
            return self.tensor(t)
        if t in NARROW:
            return cast(small(self.number("f32" if t == "f16" else "i32", LANE, 2)), t)
        return small(self.number(t, LANE, 2))

    def own_map(self, array: Array) -> tuple:
        """How elements are dealt out to threads until the next barrier."""
        size, threads = array.size, self.threads
        if size < threads:
            return self.pick([("some", 0), ("some", threads - size), ("one", self.random.randrange(threads))])
        kinds = [("add", 0)]
        if size == threads:
            kinds += [("reversed", 0), ("turned", self.random.randrange(threads))]
            if threads & (threads - 1) == 0:
                kinds.append(("xor", self.random.randrange(threads)))
        elif size < 2 * threads:
            kinds.append(("add", size - threads))
        return self.pick(kinds)

    def own_index(self, how: tuple) -> Expr:
        """An element that the thread owns."""
        kind, by = how
        tid = self.thread()
        if kind == "reversed":
            return binary("-", literal(self.threads - 1, "i32"), tid)
        if kind == "turned":
            return binary("%", binary("+", tid, literal(by, "i32")), literal(self.threads, "i32"))
        if kind == "xor":
            return binary("^", tid, literal(by, "i32"))
        return binary("-" if kind == "some" else "+", tid, literal(by, "i32")) if by else tid

    def begin_owning(self, array: Array) -> tuple | None:
        mode = self.modes.get(array.key)
        if mode is None:
            mode = self.modes[array.key] = ("own", *self.own_map(array))
        return mode[1:] if mode[0] == "own" else None

    def own_store(self) -> list[Statement]:
        """A thread writes an element of its own."""
        found = [a for a in self.exchange_arrays() if self.modes.get(a.key, ("own",))[0] == "own"]
        if not found:
            return self.assign()
        array = self.pick(found)
        how = self.begin_owning(array)
        # An element that is written in parts stays undefined in the others.
        entry = None
        value = self.value_for(array)
        if isinstance(array.element, Tensor) and len(array.element.shape) == 1 and self.chance(0.3):
            entry = self.random.randrange(array.element.count)
            value = small(self.number(array.element.scalar, LANE, 2))
        if how[0] == "one":
            store = Store(array, literal(self.random.randrange(array.size), "i32"), value, entry)
            return [If(binary("==", self.thread(), literal(how[1], "i32")), [self.alone(store)])]
        store = Store(array, self.own_index(how), value, entry)
        if how[0] == "some":
            return [If(self.is_among(how[1], array.size), [self.alone(store)])]
        return [store]

    def alone(self, store: Store) -> Store:
        """Under a condition of some lanes, a value may hold no exchange: it is made anew."""
        here, self.here = self.here, LANE
        if store.entry is None:
            store.value = self.value_for(store.array)
        else:
            store.value = small(self.number(store.array.element.scalar, LANE, 2))
        self.here = here
        return store

    def is_among(self, first: int, count: int) -> Expr:
        """Whether the thread is one of some neighbours."""
        tid = self.thread()
        if first == 0:
            return binary("<", tid, literal(count, "i32"))
        return binary(">=", tid, literal(first, "i32"))

    def write_first(self) -> list[Statement]:
        found = [a for a in self.exchange_arrays() if a.key not in self.ready]
        return self.first_written(self.pick(found)) if found else self.own_store()

    def first_written(self, array: Array) -> list[Statement]:
        """All elements of an array are written, each by its owner."""
        if self.modes.get(array.key, ("own",))[0] != "own":
            return [self.sync()]
        how = self.begin_owning(array)
        self.ready.add(array.key)
        threads, size = self.threads, array.size
        if how[0] == "one":
            here, self.here = self.here, LANE
            name = self.new_name("e")
            index = Expr(name, "i32", lambda m: m.vars[name])
            loop = self.loop_over(name, literal(size, "i32"), [Store(array, index, self.value_for(array))])
            self.here = here
            return [If(binary("==", self.thread(), literal(how[1], "i32")), [loop])]
        if how[0] == "some":
            store = self.alone(Store(array, self.own_index(how), self.value_for(array)))
            return [If(self.is_among(how[1], size), [store])]
        if size == threads:
            return [Store(array, self.own_index(how), self.value_for(array))]
        # Each thread has every so many-th, from its own on.
        here, self.here = self.here, LANE
        name = self.new_name("e")
        turn = binary("*", Expr(name, "i32", lambda m: m.vars[name]), literal(threads, "i32"))
        index = binary("%", binary("+", self.own_index(how), turn), literal(size, "i32"))
        total = binary("+", self.thread(), turn)
        store = Store(array, index, self.value_for(array))
        loop = self.loop_over(
            name, literal(-(-size // threads), "i32"), [If(binary("<", total, literal(size, "i32")), [store])]
        )
        self.here = here
        return [loop]

    def update_shared(self) -> list[Statement]:
        """All update elements atomically."""
        found = [
            a for a in self.exchange_arrays()
            if a.element in SCALARS and a.key in self.ready and self.modes.get(a.key, ("atomic",))[0] == "atomic"
        ]  # fmt: skip
        if not found:
            return self.counter()
        array = self.pick(found)
        ops = ["add", "min", "max", "and", "or", "xor"] if array.element in INTEGERS else ["min", "max"]
        mode = self.modes.setdefault(array.key, ("atomic", self.pick(ops)))
        return [self.updated(array, mode[1], "update")]

    # ---- subgroups -----------------------------------------------------------------------------------------------------------

    def exchange_value(self) -> list[Statement]:
        t = self.pick(SCALARS)
        level = SUBGROUP if self.chance(0.3) else LANE
        return [self.declared(self.exchange(t, level, 2), level, "exchange")]

    def reduce_to_first(self) -> list[Statement]:
        """A reduction whose result is on the first lane of each tile."""
        t, op = self.pick(SCALARS), self.pick(["add", "min", "max"])
        size = self.random.randrange(self.tiles + 1)
        whole = self.threads % 32 == 0 and self.chance(0.4)
        size, end, extra = (5, "", "") if whole else (size, "_tiled", f", {size}")
        v = self.number(t, LANE, 2)
        bound = v.bound << size if op == "add" else v.bound
        e = called(
            f"subgroup.reduce_{op}{end}", lambda m, x: model.reduced(op, x, 1 << size), t, v, extra=extra, bound=bound
        )  # fmt: skip
        lane = binary("%", Expr("subgroup.invocation_id()", "i32", lambda m: m.lane), literal(1 << size, "i32"))
        return self.only_on(binary("==", lane, literal(0, "i32")), e, "exchange")

    def only_on(self, is_first: Expr, e: Expr, kind: str, passes: bool = False) -> list[Statement]:
        """A value that some lanes have; others go on with another one."""
        name = self.new_name("r")

        def run(m, mask):
            if passes:
                m.pass_block(mask)
            m.assign(name, e.run(m), mask)

        line = Line(f"{name} = {e}", run, kind, (name, e.type))
        result = Expr(name, e.type, lambda m: m.vars[name], e.bound)
        other = self.number(e.type, LANE, 1)
        chosen = called(
            "oc.select",
            lambda m, c, a, b: np.where(c, a, b),
            e.type,
            is_first,
            result,
            other,
            bound=max(e.bound, other.bound),
        )
        return [line, self.declared(chosen)]

    def sort(self) -> list[Statement]:
        key, value = self.number(self.pick(SCALARS), LANE, 2), self.number(self.pick(SCALARS), LANE, 2)
        size = self.random.randrange(self.tiles + 1)
        whole = self.threads % 32 == 0 and self.chance(0.4)
        size, end, extra = (5, "", "") if whole else (size, "_tiled", f", {size}")
        names = [self.new_name("v"), self.new_name("v")]

        def run(m, mask):
            found = model.sorted_pairs(key.run(m), value.run(m), 1 << size)
            for name, values in zip(names, found, strict=True):
                m.assign(name, values, mask)

        self.variables += [Variable(names[0], key.type), Variable(names[1], value.type)]
        return [Line(f"{names[0]}, {names[1]} = subgroup.bitonic_sort_kv{end}({key}, {value}{extra})", run)]

    def subgroup_memory(self) -> list[Statement]:
        """Lanes of a subgroup exchange by memory, between barriers of the subgroup."""
        found = [
            a for a in self.exchange_arrays() if a.size >= self.threads and self.modes.get(a.key, "part") == "part"
        ]
        if not found:
            return self.exchange_value()
        array = self.pick(found)
        self.modes[array.key] = "part"
        tid = self.thread()
        lane = Expr("subgroup.invocation_id()", "i32", lambda m: m.lane)
        first = binary("-", tid, lane)
        own = tid
        if self.threads % 32 == 0 and self.chance(0.5):
            own = binary("^", tid, literal(self.random.randrange(32), "i32"))
        other = self.lane_of_subgroup()
        if self.threads % 32 == 0:
            other = binary("&", other, literal(31, other.type))
        store = Store(array, own, self.value_for(array))
        index = binary("+", first, cast(other, "i32"))
        if isinstance(array.element, Tensor):
            t = array.element
            e = Expr(
                f"{array.name}[{array.at(index)}]", t, lambda m: m.read(array.key, array.place(m, index.run(m))), LARGEST
            )  # fmt: skip
        else:
            t = {"f16": "f32"}.get(array.element, array.element)
            e = self.read(array, index, t if t in SCALARS else "i32")
        out = [store, self.subgroup_sync(), self.declared(e), self.subgroup_sync()]
        if self.here == BLOCK and array.size == self.threads:
            self.ready.add(array.key)
        return out

    def subgroup_sync(self) -> Line:
        return Line("subgroup.sync()", lambda m, mask: m.pass_subgroup(mask), "subgroup sync")

    # ---- blocks --------------------------------------------------------------------------------------------------------------

    def sync(self) -> Line:
        self.barrier()
        return Line("block.sync()", lambda m, mask: m.pass_block(mask), "sync")

    def barriers(self) -> list[Statement]:
        return [self.sync()]

    def vote(self) -> list[Statement]:
        """A barrier that tells how many hold."""
        word = self.pick(["any", "all", "count"])
        e = self.condition(LANE, 2) if self.chance(0.6) else self.number("i32", LANE, 2)
        function = {"any": np.any, "all": np.all, "count": np.sum}[word]
        name = self.new_name("u")

        def run(m, mask):
            holds = (e.run(m) != 0).reshape(-1, m.threads)
            m.pass_block(mask)
            m.assign(name, function(holds, axis=1).astype(np.int32).repeat(m.threads), mask)

        self.barrier()
        self.variables.append(Variable(name, "i32", BLOCK))
        return [Line(f"{name} = block.sync_{word}_nonzero({e})", run, "exchange", (name, "i32"))]

    def block_reduction(self) -> list[Statement]:
        threads = self.threads
        if threads % 32:
            return self.vote()
        if self.chance(0.2):
            return self.affine_maps()
        if self.chance(0.15) and threads & (threads - 1) == 0 and self.shared_bytes < MOST_SHARED // 2:
            return self.rank_of_keys()
        t, op = self.pick(SCALARS), self.pick(["add", "min", "max"])
        kind = self.pick(["reduce_all", "reduce_all", "reduce", "inclusive", "exclusive"])
        if kind == "exclusive" and t in REALS:
            op = "add"
        v = self.number(t, LANE, 2)
        bound = v.bound * threads if op == "add" else v.bound
        function = {"inclusive": model.inclusive, "exclusive": model.exclusive}.get(kind, model.reduced)
        e = called(
            f"block.{kind}_{op}", lambda m, x: function(op, x, threads), t, v, extra=f", {threads}, oc.{t}", bound=bound
        )  # fmt: skip
        if kind == "reduce":
            return self.only_on(binary("==", self.thread(), literal(0, "i32")), e, "exchange", threads > 32)
        line = self.declared(e, BLOCK if kind == "reduce_all" else LANE, "exchange")
        return [self.passing(line)] if threads > 32 else [line]

    def passing(self, line: Line) -> Line:
        """What has a barrier of the block in it."""
        action = line.action

        def run(m, mask):
            m.pass_block(mask)
            action(m, mask)

        line.action = run
        return line

    def affine_maps(self) -> list[Statement]:
        """A reduction or scan by a func that does not commute."""
        threads, t = self.threads, Tensor((2,), "u32")
        self.type_name(t)
        kind = self.pick(["all", "inclusive", "exclusive"])
        v = self.tensor(t)
        name = {"all": "reduce_all", "inclusive": "inclusive_scan", "exclusive": "exclusive_scan"}[kind]
        extra = f", {threads}, affine, {t.name}"
        if kind == "exclusive":
            extra = f", {threads}, affine, oc.Vector([1, 0], dt=oc.u32), {t.name}"
        e = called(f"block.{name}", lambda m, x: model.folded(x, threads, kind), t, v, extra=extra)
        line = self.declared(e, BLOCK if kind == "all" else LANE, "exchange")
        return [self.passing(line)] if threads > 32 else [line]

    def rank_of_keys(self) -> list[Statement]:
        threads = self.threads
        bits = threads.bit_length() - 1
        count = self.random.randrange(1, bits + 1)
        start = self.random.randrange(0, 12)
        key = self.number("u32", LANE, 2)
        bins, before = (
            Array(name, name, "i32", (threads,), "shared") for name in (self.new_name("sh"), self.new_name("sh"))
        )
        self.shared_bytes += 2 * 4 * threads + 4 * threads * (threads // 32)
        name = self.new_name("v")

        def run(m, mask):
            digit = ((key.run(m) >> np.uint32(start)) & np.uint32((1 << count) - 1)).astype(np.int64)
            m.pass_block(mask)
            place, counts, lower = model.ranks(digit, threads)
            m.write(bins.key, m.thread, counts, mask)
            m.write(before.key, m.thread, lower, mask)
            m.pass_block(mask)
            m.assign(name, place, mask)

        self.barrier()
        self.variables.append(Variable(name, "i32"))
        self.arrays += [bins, before]
        for array in (bins, before):
            self.ready.add(array.key)
            self.modes[array.key] = "read"

        def declaring(array):
            return Line(
                f"{array.name} = block.SharedArray({threads}, oc.i32)",
                lambda m, mask: m.declare(array.key, threads, ["i32"]), "declare",
            )  # fmt: skip

        call = (
            f"block.radix_rank_match_atomic_or({key}, {threads}, {bits}, {start}, {count}, {bins.name}, {before.name})"
        )
        return [declaring(bins), declaring(before), Line(f"{name} = {call}", run, "exchange", (name, "i32"))]
