"""Random control flow of programs for blocks: branches and loops of some lanes, of whole subgroups, of whole blocks; funcs; work that blocks claim."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from simt_expressions import BLOCK, LANE, SCALARS, SUBGROUP, Array, Expressions, Variable, binary, literal, small
from simt_statements import Call, Expr, For, Func, If, Leave, Line, Statement, Store, While

#: How likely statements are, by which lanes are here.
ALONE = {
    "declare": 3, "assign": 4, "hash": 2, "output": 1, "counter": 1, "own_store": 3, "update_shared": 2, "compound": 2,
    "divergent_if": 2, "divergent_loop": 1, "function": 1.5, "fence": 0.2,
}  # fmt: skip
OF_SUBGROUP = {
    "exchange_value": 3, "sort": 0.5, "reduce_to_first": 0.7, "subgroup_memory": 1.5, "subgroup_if": 1.5, "subgroup_loop": 1,
}  # fmt: skip
OF_BLOCK = {
    "barriers": 3, "vote": 1, "block_reduction": 1.8, "declare_shared": 2.5, "write_first": 2, "block_if": 1.5, "block_loop": 1.5,
    "block_while": 0.8, "leave_loop": 1, "static_if": 0.4, "call_again": 0.8, "claimed_work": 0.4,
}  # fmt: skip

#: Bodies inside each other, at most.
DEEPEST = 3

#: Calls in a loop, at most: each is compiled anew.
MOST_CALLS = 4


@dataclass
class Round:
    """A loop of blocks that is being made: how arrays are used in its first phase, and where it is left."""

    depth: int
    leaves: tuple[str, ...]
    first: dict | None = None
    certain: bool = False
    left: list[dict] = field(default_factory=list)


@dataclass
class Reusable:
    """A func that begins and ends with a barrier, so that it may be called anywhere."""

    func: Func
    values: list[tuple[str, str, int]]
    arrays: list[Array]
    inputs: list[str]
    ready: list[bool]
    result: str
    order: list[str]


def joined(*ways: dict) -> dict:
    """How arrays are used where paths meet: idle, unless all that use one do so alike."""
    found: dict = {}
    for way in ways:
        for key, mode in way.items():
            found[key] = mode if found.get(key, mode) == mode else "idle"
    return found


class Control(Expressions):
    # ---- bodies --------------------------------------------------------------------------------------------------------------

    def statements(self, count: int) -> list[Statement]:
        out: list[Statement] = []
        for _ in range(count):
            weights = dict(ALONE)
            if self.here >= SUBGROUP:
                weights |= OF_SUBGROUP
            if self.here >= BLOCK:
                # What blocks do together is what this is about.
                weights = {name: weight / 2 for name, weight in weights.items()} | OF_BLOCK
            name = self.random.choices(list(weights), list(weights.values()))[0]
            if self.depth >= DEEPEST and name.endswith(("_if", "_loop", "_while", "function", "_work")):
                name = "assign"
            out += getattr(self, name)()
        return out

    def body(self, here: int, count: int = 0) -> list[Statement]:
        """Statements in a scope of their own, with these lanes here."""
        variables, arrays, before = len(self.variables), len(self.arrays), self.here
        self.here, self.depth = here, self.depth + 1
        out = self.statements(count or self.random.randrange(1, 5))
        self.here, self.depth = before, self.depth - 1
        del self.variables[variables:]
        del self.arrays[arrays:]
        return out

    def loop_over(self, name: str, last: Expr, body: list[Statement]) -> For:
        return For(name, None, last, body)

    # ---- some lanes ----------------------------------------------------------------------------------------------------------

    def divergent_if(self) -> list[Statement]:
        if not self.in_func and not self.anonymous and self.chance(0.2):
            condition = Expr("i < n", "u1", lambda m: m.vars["i"] < m.vars["n"])
        else:
            condition = self.condition(LANE, 2)
        return [If(condition, self.body(LANE), self.body(LANE) if self.chance(0.4) else [])]

    def divergent_loop(self) -> list[Statement]:
        bound = binary("&", self.number("i32", LANE, 2), literal(self.pick([1, 3, 7]), "i32"))
        return self.some_loop(bound, LANE)

    def some_loop(self, bound: Expr, here: int) -> list[Statement]:
        """A loop without barriers, in one of several forms."""
        name = self.new_name("j")
        level = here if here > LANE else LANE
        variables = len(self.variables)
        counter = Variable(name, "i32", level, False)
        form = self.pick(["for", "for", "while"])
        out: list[Statement] = []
        if form == "for":
            self.variables.append(counter)
            first = literal(self.random.randrange(3), "i32") if self.chance(0.3) else None
            body = self.with_exit(self.body(here), here)
            out.append(For(name, first, bound, body))
            del self.variables[variables:]
        else:
            out.append(Line(f"{name} = {bound}", lambda m, mask: m.assign(name, bound.run(m), mask)))
            self.variables.append(counter)
            one = literal(1, "i32")
            less = binary("-", self.value_of(counter), one)
            condition = binary(">", self.value_of(counter), literal(0, "i32"))
            step = Line(f"{name} -= 1", lambda m, mask: m.assign(name, less.run(m), mask))
            out.append(While(condition, [step, *self.with_exit(self.body(here), here)]))
        return out

    def with_exit(self, body: list[Statement], here: int) -> list[Statement]:
        """Some of the lanes, or of the subgroups, leave the loop or its round."""
        if self.chance(0.6):
            return body
        before, self.here = self.here, here
        condition = self.condition(here, 1)
        self.here = before
        at = self.random.randrange(len(body) + 1)
        return [*body[:at], If(condition, [Leave(self.pick(["break", "continue"]))]), *body[at:]]

    # ---- subgroups -----------------------------------------------------------------------------------------------------------

    def subgroup_if(self) -> list[Statement]:
        condition = self.condition(SUBGROUP, 2)
        return [If(condition, self.body(SUBGROUP), self.body(SUBGROUP) if self.chance(0.4) else [])]

    def subgroup_loop(self) -> list[Statement]:
        bound = binary("&", self.number("i32", SUBGROUP, 1), literal(3, "i32"))
        return self.some_loop(bound, SUBGROUP)

    # ---- blocks --------------------------------------------------------------------------------------------------------------

    def barrier(self) -> None:
        """All arrays may be used in another way from here on."""
        for round_ in self.frames:
            if round_.first is None:
                round_.first = dict(self.modes)
                round_.certain = round_.depth == self.depth
        self.modes = {}

    def block_if(self) -> list[Statement]:
        condition = self.condition(BLOCK, 1)
        return [self.branched(condition)]

    def static_if(self) -> list[Statement]:
        if self.in_func:
            return self.block_if()
        at = self.random.randrange(4)
        holds = self.template > at
        return [self.branched(Expr(f"t > {at}", "u1", lambda m: np.full(m.count, holds)), static=True)]

    def branched(self, condition: Expr, static: bool = False) -> If:
        entry, ready = dict(self.modes), set(self.ready)
        then = self.body(BLOCK)
        modes, then_ready = self.modes, self.ready
        self.modes, self.ready = dict(entry), set(ready)
        otherwise = self.body(BLOCK) if self.chance(0.4) else []
        self.modes, self.ready = joined(modes, self.modes), then_ready & self.ready
        return If(condition, then, otherwise, static)

    def begin_round(self, leaves: tuple[str, ...] = ("break", "continue")) -> None:
        self.frames.append(Round(self.depth + 1, leaves))

    def end_round(self, entry: dict, ready: set) -> list[Statement]:
        """The barrier that the next round needs, if any; called in the scope of the loop's body."""
        round_ = self.frames[-1]
        first = self.modes if round_.first is None else round_.first
        certain = round_.first is None or round_.certain
        clash = any(
            first.get(key) is not None and (mode == "idle" or first[key] != mode) for key, mode in self.modes.items()
        )
        out: list[Statement] = []
        if clash or not certain or self.chance(0.2):
            out.append(Line("block.sync()", lambda m, mask: m.pass_block(mask), "sync"))
            self.depth += 1
            self.barrier()
            self.depth -= 1
        self.frames.pop()
        self.modes = joined(entry, self.modes, *round_.left)
        self.ready = ready
        return out

    def block_loop(self) -> list[Statement]:
        static = self.chance(0.12)
        name = self.new_name("j")
        if static:
            bound = literal(self.random.randrange(1, 4), "i32")
        else:
            bound = binary("&", self.number("i32", BLOCK, 1), literal(3, "i32"))
            if self.chance(0.5):
                bound = binary("+", bound, literal(1, "i32"))
        entry, ready = dict(self.modes), set(self.ready)
        self.begin_round(() if static else ("break", "continue"))
        variables = len(self.variables)
        self.variables.append(Variable(name, "i32", BLOCK, False))
        body = self.body(BLOCK)
        body += self.end_round(entry, ready)
        del self.variables[variables:]
        return [For(name, None, bound, body, static)]

    def block_while(self) -> list[Statement]:
        name = self.new_name("k")
        variables = len(self.variables)
        counter = Variable(name, "i32", BLOCK, False)
        most = literal(self.random.randrange(1, 4), "i32")
        out: list[Statement] = [Line(f"{name} = 0", lambda m, mask: m.assign(name, np.zeros(m.count, np.int32), mask))]
        self.variables.append(counter)
        goes_on = binary("<", self.value_of(counter), most)
        forever = self.chance(0.4)
        if not forever and self.chance(0.5):
            other = self.condition(BLOCK, 1)
            whole = goes_on
            goes_on = Expr(f"({whole} and {other})", "u1", lambda m: whole.run(m) & other.run(m))
        entry, ready = dict(self.modes), set(self.ready)
        self.begin_round()
        more = binary("+", self.value_of(counter), literal(1, "i32"))
        step = Line(f"{name} += 1", lambda m, mask: m.assign(name, more.run(m), mask))
        body: list[Statement] = []
        if forever:
            stop = binary(">=", self.value_of(counter), most)
            body.append(If(stop, [Leave("break")]))
            self.frames[-1].left.append(dict(self.modes))
        body += [step, *self.body(BLOCK)]
        body += self.end_round(entry, ready)
        del self.variables[variables + 1 :]
        return [*out, While(None if forever else goes_on, body)]

    def leave_loop(self) -> list[Statement]:
        """The block leaves a loop, or its round, as a whole."""
        if not self.frames or not self.frames[-1].leaves or self.in_func:
            return self.assign()
        round_ = self.frames[-1]
        word = self.pick(round_.leaves)
        condition = self.condition(BLOCK, 1)
        entry = dict(self.modes)
        body = self.body(BLOCK, 1) if self.chance(0.3) else []
        if word == "continue" or self.chance(0.3):
            self.depth += 1
            self.barrier()
            self.depth -= 1
            body.append(Line("block.sync()", lambda m, mask: m.pass_block(mask), "sync"))
        if word == "break":
            round_.left.append(dict(self.modes))
        body.append(Leave(word))
        self.modes = joined(entry)
        return [If(condition, body)]

    def leave_whole(self) -> list[Statement]:
        level = min(self.here, BLOCK)
        condition = self.condition(level, 1)
        return [If(condition, [Leave("continue")])]

    # ---- funcs ---------------------------------------------------------------------------------------------------------------

    def function(self) -> list[Statement]:
        """A func that is called here, with arrays and values."""
        if self.calls >= MOST_CALLS or self.anonymous:
            return self.assign()
        self.calls += 1
        name = self.new_name("f")
        exchanged = [a for a in self.arrays if a.kind == "shared"]
        actual = self.random.sample(exchanged, min(len(exchanged), self.random.randrange(3)))
        read_only = [a for a in self.arrays if a.kind == "input"]
        inputs = [self.pick(read_only)] if read_only and self.chance(0.5) else []
        levels = [min(self.here, self.pick([LANE, SUBGROUP, BLOCK])) for _ in range(self.random.randrange(1, 3))]
        values = [
            (f"{name}_a{at}", self.number(self.pick(SCALARS), level, 2), level) for at, level in enumerate(levels)
        ]
        views = [Array(f"{name}_s{at}", a.key, a.element, a.dims, a.kind) for at, a in enumerate(actual)]
        views += [Array(f"{name}_x{at}", a.key, a.element, a.dims, a.kind) for at, a in enumerate(inputs)]
        outer = self.variables, self.arrays, self.in_func
        self.variables = [Variable(param, value.type, level, False) for param, value, level in values]
        self.arrays, self.in_func = list(views), True
        is_ready = [a.key in self.ready for a in actual]
        closes = self.here == BLOCK and self.chance(0.5)
        self.depth += 1
        body: list[Statement] = []
        if closes:
            body.append(self.sync())
        body += self.statements(self.random.randrange(2, 5))
        result_type = self.pick(SCALARS)
        if closes:
            line = self.declared(small(self.number(result_type, LANE, 2)))
            body += [line, self.sync()]
            result = self.value_of(self.variables[-1])
        else:
            result = small(self.number(result_type, LANE, 2))
        self.depth -= 1
        self.variables, self.arrays, self.in_func = outer
        order = [view.name for view in views] + [param for param, _, _ in values]
        self.random.shuffle(order)
        func = Func(name, order, body, result)
        self.funcs_text.append(func)
        texts = {view.name: a.name for view, a in zip(views, [*actual, *inputs], strict=True)}
        texts |= {param: str(value) for param, value, _ in values}
        # What a func of a func takes has names that others do not know.
        if closes and not self.in_func:
            params = [(param, value.type, level) for param, value, level in values]
            self.funcs.append(
                Reusable(func, params, views[: len(actual)], [texts[view.name] for view in views[len(actual) :]], is_ready, result.type, order)
            )  # fmt: skip
        return [self.call(func, [texts[param] for param in order], [(p, v) for p, v, _ in values], {}, result.type)]

    def call(self, func: Func, texts: list[str], values: list, arrays: dict, result: str) -> Call:
        to = self.new_name("v")
        self.variables.append(Variable(to, result))
        return Call(func, texts, values, arrays, to)

    def call_again(self) -> list[Statement]:
        """A func that has been called is called with other arrays and values."""
        found = list(self.funcs)
        if not found or self.in_func or self.calls >= MOST_CALLS or self.anonymous:
            return self.barriers()
        reusable = self.pick(found)
        actual: list[Array] = []
        for view, ready in zip(reusable.arrays, reusable.ready, strict=True):
            fitting = [
                a for a in self.arrays
                if a.kind == "shared" and (a.element, a.dims) == (view.element, view.dims) and (a.key in self.ready or not ready)
                and a not in actual
            ]  # fmt: skip
            if not fitting:
                return self.barriers()
            actual.append(self.pick(fitting))
        self.calls += 1
        values = [(param, self.number(t, level, 2)) for param, t, level in reusable.values]
        texts = {view.name: a.name for view, a in zip(reusable.arrays, actual, strict=True)}
        texts |= {param: str(value) for param, value in values}
        inputs = iter(reusable.inputs)
        self.depth += 1
        self.barrier()
        self.depth -= 1
        arrays = {view.key: a.key for view, a in zip(reusable.arrays, actual, strict=True)}
        order = [texts.get(param) or next(inputs) for param in reusable.order]
        return [self.call(reusable.func, order, values, arrays, reusable.result)]

    # ---- work that blocks claim ----------------------------------------------------------------------------------------------

    def claimed_work(self) -> list[Statement]:
        """Blocks claim items of work until there are none left. What comes of an item does not depend on the block."""
        if self.claims or self.in_func or self.depth or self.frames:
            return self.assign()
        self.claims = True
        items, threads, results = self.items, self.threads, self.results
        claimed, item, old = self.new_name("sh"), self.new_name("v"), self.new_name("v")
        outer = self.variables, self.arrays, dict(self.modes), set(self.ready)
        declare = Line(
            f"{claimed} = block.SharedArray(1, oc.i32)", lambda m, mask: m.declare(claimed, 1, ["i32"]), "declare"
        )  # fmt: skip
        tid = self.thread()

        def claim(m, mask):
            lanes = np.flatnonzero(mask)
            found = np.zeros(m.count, np.int32)
            found[lanes] = m.arrays["k0"][0] + np.arange(len(lanes))
            m.arrays["k0"][0] += len(lanes)
            m.assign(old, found, mask)

        array = Array(claimed, claimed, "i32", (1,), "shared")
        zero = literal(0, "i32")
        store = Store(array, zero, Expr(old, "i32", lambda m: m.vars[old]))
        first = If(binary("==", tid, zero), [Line(f"{old} = oc.atomic_add(k0[0], 1)", claim), store])
        got = Expr(f"{claimed}[0]", "i32", lambda m: m.read(claimed, np.zeros(m.count, np.int32)))
        take = Line(f"{item} = {got}", lambda m, mask: m.assign(item, got.run(m), mask))
        self.variables = [v for v in self.variables if v.name in ("p", "q", "tid", "lane", "sub")]
        self.arrays = [a for a in self.arrays if a.kind == "input"]
        self.variables.append(Variable(item, "i32", BLOCK, False))
        number = self.value_of(self.variables[-1])
        stop = If(binary(">=", number, literal(items, "i32")), [Leave("break")])
        body: list[Statement] = [first, self.sync(), take, self.sync(), stop]
        self.modes, self.anonymous = {}, True
        self.begin_round(("continue",))
        inner = self.body(BLOCK, self.random.randrange(2, 6))
        value = small(self.number(results.element, LANE, 1))
        at = binary("+", binary("*", number, literal(threads, "i32")), tid)
        keep = Line(
            f"{results.name}[{at}] = {value}", lambda m, mask: m.write(results.key, at.run(m), value.run(m), mask)
        )  # fmt: skip
        self.end_round({}, set())
        end = Line("block.sync()", lambda m, mask: m.pass_block(mask), "sync")
        body += [*inner, keep, end]
        self.variables, self.arrays, _, self.ready = outer
        self.modes, self.anonymous = {}, False
        return [declare, While(None, body)]
