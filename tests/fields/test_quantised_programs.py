"""Random statements on elements that share words: what is held back and written together is what Python writes one by one."""

import importlib.util
import random

import pytest

import octants as oc

pytestmark = pytest.mark.host_access

WIDTHS = {"x": 9, "y": 12, "z": 11, "u": 7, "w": 8}  # x, y and z share a word of 32 bits, u and w one of 16
SIZE = 4

HEAD = """
import octants as oc

@oc.func
def halved(value):
    result = value
    if value % 2 == 0:
        result = value // 2
    return result

@oc.func
def put(field: oc.template(), at, value):
    field[at] = value
    return value - 1

@oc.real_func
def peek(at: oc.i32) -> oc.i32:
    return x[at] + u[at]

@oc.kernel
def run(i_: oc.i32, j_: oc.i32, a_: oc.i32, b_: oc.i32) -> oc.i32:
"""


class Writer:
    """Statements as lines, the same for both."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.lines: list[str] = []

    def number(self) -> str:
        r = self.random
        fields = [f"{name}[{r.choice('ij')}]" for name in WIDTHS]
        simple = [*r.sample(fields, 2), "a", "b", str(r.randint(-5, 9))]
        kind = r.random()
        if kind < 0.5:
            return r.choice(simple)
        if kind < 0.8:
            return f"({r.choice(simple)} {r.choice('+-')} {r.choice(simple)})"
        if kind < 0.88:
            return f"halved({r.choice(simple)})"
        if kind < 0.94:
            return f"peek({r.choice('ij')})"
        return f"({r.choice(simple)} if {r.choice(simple)} > 3 else {r.choice(simple)})"

    def statement(self, indent: int) -> None:
        r, pad = self.random, "    " * indent
        field, at = r.choice(list(WIDTHS)), r.choice("ij")
        kind = r.random()
        if kind < 0.55:
            self.lines.append(f"{pad}{field}[{at}] = {self.number()}")
        elif kind < 0.65:
            other = r.choice(list(WIDTHS))
            self.lines.append(f"{pad}{field}[{at}], {other}[{at}] = {self.number()}, {self.number()}")
        elif kind < 0.75:
            self.lines.append(f"{pad}{field}[{at}] {r.choice(['+=', '-='])} {self.number()}")
        elif kind < 0.82:
            self.lines.append(f"{pad}{r.choice('ab')} = {self.number()}")
        elif kind < 0.87:
            self.lines.append(f"{pad}{at} = ({at} + 1) % {SIZE}")
        elif kind < 0.92:
            self.lines.append(f"{pad}{r.choice('ab')} = put({field}, {at}, {self.number()})")
        elif indent < 4:
            if r.random() < 0.5:
                self.lines.append(f"{pad}if {self.number()} > {self.number()}:")
            else:
                self.lines.append(f"{pad}for _ in range({r.randint(1, 3)}):")
            before = len(self.lines)
            for _ in range(r.randint(1, 4)):
                self.statement(indent + 1)
            if len(self.lines) == before:
                self.lines.append(f"{pad}    pass")


class Element(list):
    """What a quantised field is to Python: numbers that wrap around."""

    def __init__(self, bits: int):
        super().__init__([0] * SIZE)
        self.bits = bits

    def __setitem__(self, at, value):
        value &= (1 << self.bits) - 1
        super().__setitem__(at, value - (1 << self.bits) if value >> (self.bits - 1) else value)


def packed_fields():
    fields = {name: oc.field(oc.types.quant.int(bits)) for name, bits in WIDTHS.items()}
    for names, bits in (("xyz", 32), ("uw", 16)):
        word = oc.BitpackedFields(bits)
        word.place(*(fields[name] for name in names))
        oc.root.dense(oc.i, SIZE).place(word)
    return fields


def loaded(text: str, path, **names):
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    module.__dict__.update(names)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("seed", range(24))
def test_statements_on_shared_words_are_pythons(arch, tmp_path, seed):
    writer = Writer(seed)
    for _ in range(16):
        writer.statement(2)
    # Loops in a loop are serial.
    begin = ["    i, j, a, b = i_, j_, a_, b_", "    turn = 0", "    while turn < 2:", "        turn += 1"]
    body = "\n".join([*begin, *writer.lines, "    return a + 3 * b + 5 * i + 7 * j"])
    program = loaded(HEAD + body, tmp_path / f"program_{arch}_{seed}.py", **packed_fields())
    lists = {name: Element(bits) for name, bits in WIDTHS.items()}
    plain = HEAD.replace("import octants as oc", "").split("@oc.kernel")[0]
    for line in ("@oc.func\n", "@oc.real_func\n", ": oc.template()", ": oc.i32", " -> oc.i32"):
        plain = plain.replace(line, "")
    plain += "\ndef run(i_, j_, a_, b_):\n" + body
    python: dict = dict(lists)
    exec(plain, python)  # noqa: S102
    for given in ((0, 0, 5, 2), (1, 3, -4, 9), (2, 2, 100, -7)):
        assert program.run(*given) == python["run"](*given), program.__file__
        for name, expected in lists.items():
            assert getattr(program, name).to_numpy().tolist() == list(expected), f"{name}\n{body}"
