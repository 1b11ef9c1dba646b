"""One fault in a well-formed program of blocks: what is wrong, and on which lines a device may say so.

A barrier that is needed is taken away, threads part before a barrier or an exchange, or an index leaves its array. The model (`simt_model`) says of which fault a program is
capable: where lanes then race, which lanes come by.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

import numpy as np
from simt_expressions import Expr, literal
from simt_program import Program
from simt_statements import For, If, Leave, Line, Statement, Store, Struct, Tensor, While, all_statements

#: What is looked for first.
KINDS = ("race", "parted", "left", "outside")


@dataclass
class Fault:
    """A program with a fault. One of the lines must be in the report, with one of the texts."""

    kind: str
    program: Program
    lines: set[int]
    texts: tuple[str, ...]
    #: Whether only checked code tells.
    debug: bool = False


def planted(seed: int) -> Fault | None:
    """A program of this seed or of one near it, with a fault."""
    order = random.Random(seed)
    kinds = [KINDS[seed % len(KINDS)], *KINDS]
    for attempt in range(20):
        base = seed + 1_000_003 * attempt
        for kind in kinds[:2] if attempt < 10 else kinds:
            if (fault := plant(Program(base), kind, order)) is not None:
                return fault
    return None


def plant(program: Program, kind: str, order: random.Random) -> Fault | None:
    program.expected()
    return {"race": race, "parted": parted, "left": left, "outside": outside}[kind](program, order)


def places(program: Program, order: random.Random, wanted) -> list[tuple[list[Statement], int]]:
    """Statements that ran, in random order."""
    found = [(body, at) for body, at in program.all_statements() if body[at].seen is not None and wanted(body[at])]
    order.shuffle(found)
    return found


def render(program: Program) -> None:
    for statement in (body[at] for body, at in program.all_statements()):
        statement.seen = None
    program.text = program.render()


def race(program: Program, order: random.Random) -> Fault | None:
    """A barrier less."""
    for body, at in places(program, order, lambda one: getattr(one, "kind", "") in ("sync", "subgroup sync"))[:8]:
        barrier = body.pop(at)
        render(program)
        of_numbers, of_vectors = program.expected(keeps_touches=True)[1]
        if of_numbers or of_vectors:
            return Fault("race", program, set().union(*of_numbers, *of_vectors), ("without a barrier between",))
        body.insert(at, barrier)
    return None


def some_lanes(statement: Statement) -> Expr | None:
    """A condition that holds for some lanes of each subgroup that comes by, and not for others."""
    if statement.threads == 1:
        return None
    return Expr("block.thread_idx() % 2 == 0", "u1", lambda m: m.thread % 2 == 0)


#: What lanes do together; tiles of one lane do nothing.
TOGETHER = re.compile(
    r"block\.(sync|reduce|inclusive|exclusive|radix)|subgroup\.(sync|shuffle|broadcast|ballot|all_|any_|segmented|exclusive)|_tiled\(.*, [1-5]\)"
    r"|subgroup\.(reduce|inclusive)_[a-z]+(_[a-z]+)?(?<!_tiled)\("
)


def zero_of(t) -> str:
    """The text of a value of a type."""
    if t == "u1":
        return "1 > 2"
    if isinstance(t, Struct):
        return f"{t.name}({', '.join(f'{name}={zero_of(member)}' for name, member in t.members)})"
    if isinstance(t, Tensor):
        rows = np.zeros(t.shape, int).tolist()
        return f"oc.{'Vector' if len(t.shape) == 1 else 'Matrix'}({rows}, dt=oc.{t.scalar})"
    return str(literal(0, t))


MISSED = ("never reaches", "is elsewhere")


def parted(program: Program, order: random.Random) -> Fault | None:
    """A barrier or an exchange under a condition that holds for some lanes."""
    kinds = ("sync", "subgroup sync", "exchange")
    for body, at in places(program, order, lambda one: getattr(one, "kind", "") in kinds and TOGETHER.search(one.text)):
        line = body[at]
        condition = some_lanes(line)
        if condition is None:
            continue
        before = []
        if line.declares:
            name, t = line.declares
            before = [Line(f"{name} = {zero_of(t)}", lambda m, mask: None)]
        body[at : at + 1] = [*before, If(condition, [line])]
        render(program)
        return Fault("parted", program, {line.line}, MISSED)
    return None


def left(program: Program, order: random.Random) -> Fault | None:
    """Some lanes leave a loop, or its round, before a barrier."""
    found = []
    for body, at in places(
        program, order, lambda one: isinstance(one, (For, While)) and not getattr(one, "static", False)
    ):
        inner = body[at].body
        found += [
            (inner, place)
            for place, one in enumerate(inner)
            if getattr(one, "kind", "") == "sync" and one.seen is not None
        ]
    for inner, place in found:
        condition = some_lanes(inner[place])
        if condition is None:
            continue
        barrier = inner[place]
        inner.insert(place, If(condition, [Leave("break")]))
        render(program)
        return Fault("left", program, {barrier.line}, MISSED)
    return None


def outside(program: Program, order: random.Random) -> Fault | None:
    """An index behind the end of a shared array, on one lane."""
    for loop in program.loops:
        found = [body[at] for body, at in all_statements(loop.body)]
        stores = [
            one for one in found if isinstance(one, Store) and one.array.kind == "shared" and one.seen is not None
        ]
        if not stores:
            continue
        store = order.choice(stores)
        store.stray = order.choice(np.flatnonzero(store.seen).tolist()) % loop.threads
        render(program)
        return Fault("outside", program, {store.line}, ("out of bounds",), debug=True)
    return None
