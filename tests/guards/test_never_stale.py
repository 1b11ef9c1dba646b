"""Whatever lowering reads is part of what a kernel is kept by: of each kind of thing, a changed one gives new code."""

import os
import subprocess
import sys

import pytest

import octants as oc

pytestmark = pytest.mark.no_device

LIBRARY = """
import octants as oc

CONSTANT = 2

@oc.func
def helper(v):
    return v + 1
"""

PROGRAM = """
import enum
import functools
import numpy as np
import octants as oc
import library
from library import helper

oc.init(arch=oc.cpu, log_level="error", offline_cache=True)

class Settings:
    factor = 3
    def __init__(self):
        self.shift = 4
        self.inner = [5, {"depth": 6}]
    def scaled(self, v):
        return v * 7

class Kind(enum.IntEnum):
    A = 8

@oc.data_oriented
class Solver:
    def __init__(self):
        self.order = 9
    @oc.func
    def correct(self, v):
        return v - 10
    @oc.kernel
    def run(self) -> oc.i32:
        return self.correct(self.order)

class Refined(Solver):
    pass

settings = Settings()
table = [11, 12]
weights = np.array([13, 14], np.int32)
vector = oc.Vector([15, 16])
Number = oc.i32

def chosen(n):
    return n * 17

def make(value):
    @oc.func
    def inner(v):
        return v + value
    return inner

added = make(18)
fixed = functools.partial(helper)

@oc.func
def with_default(v, by=19):
    return v + by

@oc.kernel
def module_constant() -> oc.i32:
    return library.CONSTANT

@oc.kernel
def other_module() -> oc.i32:
    return helper(20) + fixed(1)

@oc.kernel
def attribute() -> oc.i32:
    return settings.shift

@oc.kernel
def class_attribute() -> oc.i32:
    return settings.factor

@oc.kernel
def method() -> oc.i32:
    return oc.static(settings.scaled(2))

@oc.kernel
def items() -> oc.i32:
    return settings.inner[0] + settings.inner[1]["depth"] + table[1]

@oc.kernel
def member_of_enum() -> oc.i32:
    return Kind.A

@oc.kernel
def static_call() -> oc.i32:
    return oc.static(chosen(21))

@oc.kernel
def closure() -> oc.i32:
    return added(1)

@oc.kernel
def default() -> oc.i32:
    return with_default(1)

@oc.kernel
def array() -> oc.i32:
    return oc.static(int(weights[1]))

@oc.kernel
def constant_vector() -> oc.i32:
    return vector[1]

@oc.kernel
def annotation(v: "Number") -> oc.f32:
    return v * 1000000

print(
    module_constant(), other_module(), attribute(), class_attribute(), method(), items(), member_of_enum(),
    static_call(), closure(), default(), array(), constant_vector(), annotation(5000), Refined().run(),
)
"""

#: What is changed, in which file, and by what.
EDITS = {
    "a constant of a module": ("library", "CONSTANT = 2", "CONSTANT = 3"),
    "a func of a module": ("library", "return v + 1", "return v + 2"),
    "an attribute": ("program", "self.shift = 4", "self.shift = 5"),
    "an attribute of a class": ("program", "factor = 3", "factor = 4"),
    "a method": ("program", "return v * 7", "return v * 8"),
    "an item of a list": ("program", "self.inner = [5,", "self.inner = [6,"),
    "an item of a dict": ("program", '{"depth": 6}', '{"depth": 7}'),
    "an item of a global list": ("program", "table = [11, 12]", "table = [11, 13]"),
    "a member of an enum": ("program", "A = 8", "A = 9"),
    "what a function gives": ("program", "return n * 17", "return n * 18"),
    "a closure's value": ("program", "added = make(18)", "added = make(19)"),
    "a default": ("program", "by=19", "by=20"),
    "an element of an array": ("program", "np.array([13, 14]", "np.array([13, 15]"),
    "an entry of a vector": ("program", "oc.Vector([15, 16])", "oc.Vector([15, 17])"),
    "an annotation": ("program", "Number = oc.i32", "Number = oc.f32"),
    "a number of an object": ("program", "self.order = 9", "self.order = 8"),
    "a method of a class": ("program", "return v - 10", "return v - 11"),
    "a method of a derived class": (
        "program",
        "class Refined(Solver):\n    pass",
        "class Refined(Solver):\n    @oc.func\n    def correct(self, v):\n        return v - 12",
    ),
}


def run(folder, texts, **environment):
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    environment = os.environ | {"OC_OFFLINE_CACHE_FILE_PATH": str(folder / "kept")} | environment
    # Files that are changed within a second have the same time: Python's own compiled files would be stale.
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(folder / "program.py")],
        capture_output=True, text=True, timeout=240, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_kind_of_thing_that_is_read(tmp_path):
    texts = {"program": PROGRAM, "library": LIBRARY}
    first = run(tmp_path, texts)
    assert run(tmp_path, texts) == first
    for what, (file, before, after) in EDITS.items():
        assert texts[file].count(before) == 1, what
        edited = texts | {file: texts[file].replace(before, after)}
        changed = run(tmp_path, edited)
        differing = [a != b for a, b in zip(first.split(), changed.split(), strict=True)]
        assert sum(differing) == 1, (what, first, changed)
    # And back again, from the disk.
    assert run(tmp_path, texts) == first


FACTOR = 2
NUMBERS = [3, 4]


class Holder:
    number = 5

    @staticmethod
    def doubled(v):
        return 2 * v


@oc.func
def grown(v):
    return v + FACTOR


def thirty_more(v):
    return v + 30


def test_a_new_lowering_reads_everything_anew(monkeypatch):
    @oc.kernel
    def read() -> oc.i32:
        return grown(0) + 10 * NUMBERS[1] + 100 * Holder.number + oc.static(Holder.doubled(500))

    def value():
        oc.init(arch=oc.cpu, log_level="error")
        return read()

    assert value() == 1542
    monkeypatch.setitem(globals(), "FACTOR", 3)
    assert value() == 1543
    monkeypatch.setitem(globals(), "NUMBERS", [3, 5])
    assert value() == 1553
    monkeypatch.setattr(Holder, "number", 6)
    assert value() == 1653
    monkeypatch.setattr(Holder, "doubled", staticmethod(lambda v: 4 * v))
    assert value() == 2653
    monkeypatch.setitem(globals(), "grown", oc.func(thirty_more))
    assert value() == 2680
