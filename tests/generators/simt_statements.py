"""Statements of programs for blocks: each knows its text, and what it does in the model (`simt_model`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from simt_model import Machine


@dataclass(frozen=True)
class Tensor:
    """The type of a vector or a matrix."""

    shape: tuple[int, ...]
    scalar: str

    @property
    def count(self) -> int:
        return int(np.prod(self.shape))

    @property
    def name(self) -> str:
        return f"{'V' if len(self.shape) == 1 else 'M'}{self.count}{self.scalar}"


@dataclass(frozen=True)
class Struct:
    """The type of a struct: names of its members and their types."""

    name: str
    members: tuple[tuple[str, object], ...]


@dataclass
class Expr:
    """An expression: its text, its type, what it is on all lanes; of a real, how large it gets."""

    text: str
    type: object
    run: Callable[[Machine], object]
    bound: int = 0

    def __str__(self) -> str:
        return self.text


class Statement:
    """A statement; `line` is set when the text is made, `seen` while the model runs: the lanes that came here, of blocks of so many `threads`."""

    line = 0
    seen = None
    threads = 0

    def inner(self) -> Iterator[list[Statement]]:
        """The bodies in it."""
        return iter(())

    def render(self, out: list[str], indent: str) -> None:
        raise NotImplementedError

    def run(self, m: Machine, mask) -> None:
        raise NotImplementedError


def render_all(statements: list[Statement], out: list[str], indent: str) -> None:
    for statement in statements:
        statement.line = len(out) + 1
        statement.render(out, indent)
    if not statements:
        out.append(f"{indent}pass")


@dataclass(eq=False)
class Line(Statement):
    """A statement of one line. `kind` says what faults may be planted here; `declares` is a variable that begins here."""

    text: str
    action: Callable[[Machine, np.ndarray], None]
    kind: str = ""
    declares: tuple[str, object] | None = None

    def render(self, out, indent):
        out.append(indent + self.text)

    def run(self, m, mask):
        self.action(m, mask)


@dataclass(eq=False)
class Store(Statement):
    """A write to an array, at an element that is known by its number."""

    array: object
    index: Expr
    value: Expr
    entry: int | None = None
    #: A lane that writes outside of the array.
    stray: int | None = None
    kind = "store"

    def render(self, out, indent):
        index = self.index
        if self.stray is not None:
            off = f"oc.select(block.thread_idx() == {self.stray}, {self.array.size}, 0)"
            index = Expr(f"({index} + {off})", "i32", index.run)
        entry = "" if self.entry is None else f"[{self.entry}]"
        out.append(f"{indent}{self.array.name}[{self.array.at(index)}]{entry} = {self.value}")

    def run(self, m, mask):
        m.write(self.array.key, self.array.place(m, self.index.run(m)), self.value.run(m), mask, self.entry)


@dataclass(eq=False)
class If(Statement):
    condition: Expr
    then: list[Statement]
    otherwise: list[Statement] = field(default_factory=list)
    #: Known while compiling.
    static: bool = False

    def inner(self):
        return iter([self.then, self.otherwise] if self.otherwise else [self.then])

    def render(self, out, indent):
        out.append(f"{indent}if {f'oc.static({self.condition})' if self.static else self.condition}:")
        render_all(self.then, out, indent + "    ")
        if self.otherwise:
            out.append(f"{indent}else:")
            render_all(self.otherwise, out, indent + "    ")

    def run(self, m, mask):
        holds = self.condition.run(m)
        m.run(self.then, mask & holds)
        m.run(self.otherwise, mask & ~holds)


@dataclass(eq=False)
class For(Statement):
    """A serial loop. Each lane has bounds of its own."""

    name: str
    first: Expr | None
    last: Expr
    body: list[Statement]
    static: bool = False

    def inner(self):
        return iter([self.body])

    def render(self, out, indent):
        bounds = f"{self.first}, {self.last}" if self.first else f"{self.last}"
        loop = f"oc.static(range({bounds}))" if self.static else f"range({bounds})"
        out.append(f"{indent}for {self.name} in {loop}:")
        render_all(self.body, out, indent + "    ")

    def run(self, m, mask):
        at = self.first.run(m) if self.first else np.zeros(m.count, np.int32)
        last = self.last.run(m)
        m.frames.append(m.frame())
        live = mask & (at < last)
        while live.any():
            m.frames[-1][1][:] = False
            m.assign(self.name, at, live)
            m.run(self.body, live)
            at = at + np.int32(1)
            live = live & ~m.frames[-1][0] & (at < last)
        m.frames.pop()


@dataclass(eq=False)
class While(Statement):
    condition: Expr | None
    body: list[Statement]

    def inner(self):
        return iter([self.body])

    def render(self, out, indent):
        out.append(f"{indent}while {self.condition or True}:")
        render_all(self.body, out, indent + "    ")

    def run(self, m, mask):
        m.frames.append(m.frame())
        live = mask.copy()
        for turn in range(10_000):
            m.at(self, live)
            if self.condition:
                live = live & self.condition.run(m)
            if not live.any():
                m.frames.pop()
                return
            m.frames[-1][1][:] = False
            m.run(self.body, live)
            live = live & ~m.frames[-1][0]
        raise AssertionError("a loop of the model does not end")


@dataclass(eq=False)
class Leave(Statement):
    """`break` or `continue`."""

    word: str
    kind = ""

    def render(self, out, indent):
        out.append(indent + self.word)

    def run(self, m, mask):
        m.frames[-1][0 if self.word == "break" else 1][mask] = True


@dataclass(eq=False)
class Func:
    """A func: its parameters, and what it does with them."""

    name: str
    params: list[str]
    body: list[Statement]
    result: Expr | None
    line: int = 0

    def render(self, out):
        out.append("@oc.func")
        out.append(f"def {self.name}({', '.join(self.params)}):")
        render_all(self.body, out, "    ")
        if self.result:
            out.append(f"    return {self.result}")
        self.line = len(out)
        out.extend(["", ""])


@dataclass(eq=False)
class Call(Statement):
    """A call of a func: arrays go to its parameters by their names, values are assigned to them."""

    func: Func
    texts: list[str]
    values: list[tuple[str, Expr]]
    arrays: dict[str, str]
    to: str | None = None
    kind = ""

    def render(self, out, indent):
        to = f"{self.to} = " if self.to else ""
        out.append(f"{indent}{to}{self.func.name}({', '.join(self.texts)})")

    def run(self, m, mask):
        for (name, _), value in zip(self.values, [value.run(m) for _, value in self.values], strict=True):
            m.assign(name, value, mask)
        names = m.names
        m.names = names | {key: m.resolve(name) for key, name in self.arrays.items()}
        m.run(self.func.body, mask)
        if self.func.result:
            m.line, m.mask = self.func.line, mask
            value = self.func.result.run(m)
        m.names = names
        if self.to:
            m.assign(self.to, value, mask)


def all_statements(statements: list[Statement]) -> Iterator[tuple[list[Statement], int]]:
    """Each statement as a body and its place in it, those inside of others too."""
    for at, statement in enumerate(statements):
        yield statements, at
        for body in statement.inner():
            yield from all_statements(body)
