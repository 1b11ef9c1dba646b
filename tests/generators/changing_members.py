"""Random programs whose objects change between launches, held against the same text run by Python.

A program is a class with members of many kinds, and kernels that read some of them: directly, in `oc.static`, through plain methods and funcs, through
globals. Between launches members are replaced, changed in place, added and taken away; classes get other methods and attributes. After each change a kernel gives
what its text gives when Python runs it on the same objects.

    python tests/generators/changing_members.py 42                 one program, with its text
    python tests/generators/changing_members.py 0 2000 --jobs 2    many
"""

import argparse
import concurrent.futures
import importlib.util
import random
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import octants as oc

#: Programs in one process, and the seconds that they may take.
IN_ONE_PROCESS = 50
BATCH_SECONDS = 1200

HEAD = """
import collections
import dataclasses
import enum
import functools
import types

import numpy as np
import octants as oc


class Mode(enum.IntEnum):
    A = 1
    B = 2
    C = 3


class Tagged(int):
    tag = 4


class Inner:
    kind = 1

    def __init__(self):
        self.v, self.mode, self.l, self.d = 2, "ab", [1, 2, 3], {"a": 1, "b": 2}
        self.deep = types.SimpleNamespace(w=3, names=["x", "yy"])

    def twice(self):
        return 2 * self.v + self.kind

    def table(self):
        return [self.v, [self.kind, self.deep.w]]


@dataclasses.dataclass
class Pair:
    a: int
    b: int


CONFIG = types.ModuleType("config")
CONFIG.n = 3
CONFIG.text = "ab"
HELD = Inner()
TABLE = [1, 2, 3]


class Row(list):
    pass


ROW = Row([1, 2])
ORDERED = collections.OrderedDict(a=1, b=2, c=3)
RECORDS = np.array([(1, 2.0), (3, 4.0)], dtype=[("a", "i4"), ("b", "f4")])
RECORD = RECORDS[1]
GRID = np.array([[1, 2], [3, 4]])
OPTIONS = {"p": 1, "q": 2}


def cubed(n):
    return n * n * n


def added(a, b):
    return a + b


def summed(values, scale=1):
    total = 0
    for value in values:
        total += value * scale
    return total


def of_globals(n):
    return n + TABLE[0] + OPTIONS["p"] + CONFIG.n + HELD.v


def counter():
    count = [1]

    def read():
        return count[0]

    return read, count


READ, COUNT = counter()


@oc.data_oriented
class Members:
    level = 5

    def __init__(self):
        self.n, self.x, self.flag, self.text = 3, 4, True, "abc"
        self.l, self.d, self.t = [1, 2, 3], {"a": 1, "b": 2, "c": 3}, (1, (2, 3))
        self.ll = [[1, 2], [3]]
        self.s, self.fs = {1, 2, 3}, frozenset([4, 5])
        self.deque, self.bytes, self.range = collections.deque([1, 2]), bytearray(b"ab"), range(4)
        self.zero, self.array = np.array(3), np.array([1, 2, 3])
        self.scalar = np.int64(6)
        self.mode, self.tagged = Mode.A, Tagged(5)
        self.inner, self.pair = Inner(), Pair(1, 2)
        self.callback = cubed
        self.vector = oc.Vector([1, 2])
        self.ordered = collections.OrderedDict(a=1, b=2, c=3)
        self.bound = self.plain

    @property
    def total(self):
        return self.n + self.d["a"] + len(self.l)

    def plain(self):
        return self.l[0] + self.d["a"]

    aliased = plain
    short = lambda self: self.n + 7

    def deep(self):
        return self.inner.deep.w + len(self.inner.deep.names) + self.ll[0][0]

    def of_array(self):
        return int(self.array[1]) + int(self.zero) + self.array.shape[0]

    def of_class(self):
        return self.level + self.inner.kind

    def traced(self, v):
        return v * self.d["b"] + self.inner.v

    def listed(self):
        return [value + self.n for value in self.l]

    def made(self):
        return Pair(self.n, self.inner.v)

    def chosen(self):
        return Members.f if self.n % 2 else Members.g

    @oc.func
    def f(self, v):
        return v + 1

    @oc.func
    def g(self, v):
        return v * 2 + self.n


class Other(Members):
    level = 7

    @oc.func
    def f(self, v):
        return v + 100

    def plain(self):
        return 50 + self.l[0]


def hidden(v):
    return v + 30


@oc.func
def another(self, v):
    return v + 60


def another_plain(self):
    return self.l[0] * 3
"""

#: What a kernel reads: statements that add to `t`. `HOST(o, "f")` is `o.f`, as Python can call it.
READS = [
    "t += self.n * 2",
    "t += self.x + self.n",
    "t += 1 if self.flag else 2",
    "t += self.l[0] + self.l[-1]",
    "t += oc.static(len(self.l))",
    "t += len(self.l)",
    "for a in oc.static(self.l):\n    t = t * 2 + a",
    "for a in oc.static(self.ll):\n    for b in oc.static(a):\n        t = t * 2 + b",
    "for a in oc.static(self.d):\n    t = t * 2 + self.d[a]",
    "for a, b in oc.static(self.d.items()):\n    t = t * 2 + b + oc.static(len(a))",
    "for a in oc.static(self.d.values()):\n    t = t * 2 + a",
    "t += self.d.get('z', 9)",
    "t += self.d.get('a', 8)",
    "t += self.d['b']",
    "t += 1 if oc.static('z' in self.d) else 2",
    "t += self.t[0] + self.t[1][1]",
    "for a in oc.static(sorted(self.s)):\n    t = t * 2 + a",
    "t += 1 if oc.static(7 in self.s) else 2",
    "t += oc.static(sum(self.fs) + len(self.s))",
    "t += self.deque[0] + oc.static(len(self.deque))",
    "for a in oc.static(self.deque):\n    t = t * 2 + a",
    "for a in oc.static(self.bytes):\n    t = t * 2 + a",
    "t += self.bytes[0]",
    "for a in oc.static(self.range):\n    t = t * 2 + a",
    "t += oc.static(len(self.range))",
    "t += self.zero",
    "t += self.scalar + 1",
    "t += self.array.shape[0]",
    "t += self.mode + 1",
    "t += self.mode.value * 2",
    "t += oc.static(len(self.mode.name))",
    "t += self.tagged.tag + self.tagged",
    "t += self.text.count('a')",
    "t += 1 if oc.static(self.text.startswith('a')) else 2",
    "t += 1 if self.text[0] == 'a' else 2",
    "t += 1 if self.text == 'abc' else 2",
    "t += oc.static({'abc': 1, 'xbc': 2}.get(self.text, 3))",
    "t += self.inner.v + self.inner.kind",
    "t += oc.static(len(self.inner.mode))",
    "t += self.inner.deep.w",
    "t += self.inner.twice()",
    "for a in oc.static(self.inner.l):\n    t = t * 2 + a",
    "t += self.inner.table()[1][0] + self.inner.table()[0]",
    "t += self.pair.a * 3 + self.pair.b",
    "t += oc.static(self.pair == Pair(1, 2)) * 2",
    "t += self.vector[0] * 2 + self.vector[1]",
    "t += self.total",
    "t += self.plain()",
    "t += self.aliased() + self.short()",
    "t += self.bound()",
    "t += len(ROW) + ROW[0]",
    "for a in oc.static(ROW):\n    t = t * 2 + a",
    "for a in oc.static(ORDERED):\n    t = t * 2 + ORDERED[a]",
    "for a in oc.static(self.ordered):\n    t = t * 2 + self.ordered[a]",
    "t += int(RECORD['a'])",
    "t += self.deep()",
    "t += self.of_array()",
    "t += self.of_class()",
    "t += self.traced(t)",
    "for a in oc.static(self.listed()):\n    t = t * 2 + a",
    "t += self.made().a + self.made().b",
    "t += self.callback(2)",
    "t += HOST(self, 'f')(t)",
    "t += HOST(self, 'g')(2)",
    "t += CHOSEN(self)(self, 3)",
    "t += self.level",
    "t += 1 if oc.static(hasattr(self, 'extra')) else 2",
    "t += oc.static(getattr(self, 'extra', 11))",
    "t += oc.static(vars(self.inner)['v'])",
    "t += oc.static(isinstance(self, Other)) * 3",
    "t += oc.static(type(self.inner).__name__ == 'Inner') * 3",
    "t += oc.static(f'{self.n}-{self.text}' == '3-abc') * 4",
    "t += HELD.v + HELD.kind",
    "t += HELD.l[0] + HELD.d['a']",
    "t += HELD.deep.w + oc.static(len(HELD.mode))",
    "t += HELD.twice()",
    "t += TABLE[0] + OPTIONS['p']",
    "for a in oc.static(TABLE):\n    t = t * 2 + a",
    "for a in oc.static(OPTIONS):\n    t = t * 2 + OPTIONS[a]",
    "t += GRID[0, 1]",
    "for a in oc.static(GRID[1]):\n    t = t * 2 + a",
    "t += CONFIG.n + oc.static(len(CONFIG.text))",
    "t += oc.static(cubed(self.n))",
    "t += oc.static(summed(self.l, 2))",
    "t += oc.static(of_globals(self.x))",
    "t += oc.static(READ())",
    "t += Inner.kind + Members.level",
    "t += oc.static(max(self.l) if self.l else 0)",
    "t += abs(self.x - 5) + min(self.n, 2) + max(self.x, self.n, 3)",
    "t += int(self.n / 2) + (1 if 1 < self.n <= self.x else 2)",
    "t += oc.static(all(self.l)) + oc.static(any(self.ll))",
    "t += oc.static(list(map(cubed, self.l))[0])",
    "t += oc.static(functools.reduce(added, self.l, 0))",
    "t += oc.static(dict(zip('ab', self.l)).get('a', 1))",
]

#: What happens between launches; `r` is a random number from 1 to 9.
CHANGES = [
    "s.n = r", "s.x = r", "s.x += 1", "s.flag = not s.flag", "s.text = r * 'a' + 'bc'", "s.text = 'xbc'", "s.text = 'abc'",
    "s.l[0] = r", "s.l.append(r)", "s.l = [r] + s.l[:3]", "s.l.reverse()", "s.l = list(s.l)",
    "s.d['a'] = r", "s.d['z'] = r", "s.d.pop('z', None)", "s.d = dict(reversed(list(s.d.items())))", "s.d = dict(s.d)",
    "s.d['c'] = r; s.d['b'] += 1", "s.t = (r, (2, r))", "s.ll[0][0] = r", "s.ll.append([r])", "s.ll = [[r, 1], [2]]",
    "s.s.add(r)", "s.s = {r, 7}", "s.s = set(s.s)", "s.fs = frozenset([r])", "s.deque.appendleft(r); s.deque.pop()",
    "s.deque.append(r)", "s.deque = collections.deque([r])", "s.bytes[0] = r", "s.bytes = bytearray(bytes([r, 2]))",
    "s.range = range(r)", "s.range = range(r, 9, 2)", "s.zero[()] = r", "s.zero = np.array(r)", "s.array[1] = r",
    "s.array = np.arange(r) + 1 if r > 1 else np.array([1, 2])", "s.scalar = np.int64(r)", "s.mode = Mode(1 + r % 3)",
    "s.tagged = Tagged(r)", "s.tagged.tag = r", "Tagged.tag = r", "s.inner.v = r", "s.inner = Inner()", "Inner.kind = r",
    "s.inner.kind = r", "s.inner.mode = r * 'm'", "s.inner.deep.w = r", "s.inner.deep = types.SimpleNamespace(w=r, names=[])",
    "s.inner.deep.names.append('z')", "s.inner.l[0] = r", "s.inner.l = [r]", "s.inner.__dict__['v'] = r",
    "s.pair.a = r", "s.pair = Pair(r, 2)", "s.pair = Pair(1, 2)", "s.vector = oc.Vector([r, 1])", "s.vector[0] = r",
    "s.callback = functools.partial(pow, r)", "s.callback = cubed", "s.callback = lambda n, r=r: n + r", "s.extra = r",
    "s.__dict__.pop('extra', None)", "s.__class__ = Other", "s.__class__ = Members", "s.f = hidden", "s.__dict__.pop('f', None)",
    "Members.f = another", "Other.f = another", "Members.plain = another_plain", "Members.level = r", "Other.level = r", "s.level = r",
    "HELD.v = r", "HELD.l[0] = r", "HELD.l = [r, 1]", "HELD.d['a'] = r", "HELD.deep.w = r", "HELD.mode = 'c' * r",
    "HELD.deep = types.SimpleNamespace(w=r, names=[])", "TABLE[0] = r", "TABLE.append(r)", "TABLE.reverse()", "OPTIONS['p'] = r",
    "OPTIONS['q'] = OPTIONS.pop('q')", "GRID[0, 1] = r", "GRID[1] = r", "CONFIG.n = r", "CONFIG.text = 'x' * r", "COUNT[0] = r",
    "ROW.append(r)", "ROW[0] = r", "ORDERED.move_to_end('a')", "ORDERED['b'] = r", "s.ordered.move_to_end('b')", "s.ordered['a'] = r",
    "s.ordered.move_to_end('c', last=False)", "RECORDS['a'][1] = r", "Members.aliased = another_plain", "s.aliased = lambda r=r: r",
    "s.__dict__.pop('aliased', None)", "Members.short = lambda self, r=r: self.n * r", "s.bound = s.deep", "s.bound = lambda r=r: r",
    "s = Members()", "pass",
]  # fmt: skip


class Program:
    """Kernels over some of the reads, and changes with how often kernels are launched after them."""

    def __init__(self, seed: int):
        draw = random.Random(seed)
        self.kernels = [draw.sample(READS, draw.randint(1, 5)) for _ in range(2)]
        self.changes = []
        for _ in range(12):
            some = [(draw.choice(CHANGES), draw.randint(1, 9)) for _ in range(draw.randint(0, 3))]
            self.changes.append((some, draw.randint(1, 4)))

    def body(self, kernel: list[str]) -> str:
        text = "        t = 1\n"
        for read in kernel:
            text += "".join(f"        {line}\n" for line in read.splitlines())
            text += "        t = t % 1009\n"
        return text + "        return t\n"

    def text(self) -> str:
        text = HEAD + "\n\nclass Kernels:\n"
        for number, kernel in enumerate(self.kernels):
            body = self.body(kernel)
            for name in ("f", "g"):
                body = body.replace(f"HOST(self, '{name}')", f"self.{name}")
            text += f"    @oc.kernel\n    def kernel{number}(self) -> oc.i32:\n{body.replace('CHOSEN(self)', 'self.chosen()')}\n"
        return text

    def model(self) -> str:
        text = ""
        for number, kernel in enumerate(self.kernels):
            text += f"def kernel{number}(self):\n" + self.body(kernel)
        return text


MODEL_HEAD = """
class oc:
    static = staticmethod(lambda value: value)


def as_python(function):
    return getattr(function, "__wrapped__", function)


def HOST(object, name):
    if name in vars(object):
        return getattr(object, name)
    function = as_python(getattr(type(object), name))
    return lambda *given: function(object, *given)


def CHOSEN(object):
    return as_python(object.chosen())


"""


def check(seed: int, folder: Path) -> str | None:
    """What a program gives that Python does not, if anything."""
    program = Program(seed)
    path = folder / f"members_{seed}.py"
    path.write_text(program.text())
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for number in range(len(program.kernels)):
        setattr(module.Members, f"kernel{number}", vars(module.Kernels)[f"kernel{number}"])
    names = dict(vars(module))
    exec(MODEL_HEAD + program.model(), names)
    state = {"s": module.Members()}
    done = []
    for changes, launches in program.changes:
        for change, r in changes:
            done.append(f"{change}  # r = {r}")
            state["r"] = r
            exec(change, vars(module), state)
        for number in range(len(program.kernels)):
            try:
                expected = names[f"kernel{number}"](state["s"])
            except Exception as error:
                expected = type(error)
            for launch in range(launches):
                try:
                    found = getattr(state["s"], f"kernel{number}")()
                except Exception as error:
                    found = error
                if isinstance(expected, type) and isinstance(found, Exception):
                    continue
                if found != expected:
                    history = "\n".join(done)
                    return f"program {seed}: kernel{number} gives {found!r}, not {expected!r}, at launch {launch} after\n{history}"
    return None


def check_range(first: int, last: int) -> list[str]:
    oc.init(arch=oc.cpu, log_level="error")
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        wrong = [problem for seed in range(first, last) if (problem := check(seed, Path(folder)))]
    oc.reset()
    return wrong


def batch(first: int, last: int) -> tuple[bool, str]:
    command = [sys.executable, __file__, str(first), str(last), "--in-process"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=BATCH_SECONDS)
    except subprocess.TimeoutExpired:
        return False, f"programs {first} to {last} take longer than {BATCH_SECONDS} s"
    return done.returncode == 0, done.stdout + done.stderr


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int, nargs="?")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--in-process", action="store_true", help="check the range in this process")
    arguments = parser.parse_args()
    if arguments.last is None:
        program = Program(arguments.first)
        print(program.model())
        for changes, launches in program.changes:
            print(changes, launches)
        arguments.last, arguments.in_process = arguments.first + 1, True
    if arguments.in_process:
        wrong = check_range(arguments.first, arguments.last)
        print(*wrong, sep="\n")
        return 1 if wrong else 0
    begin = time.monotonic()
    starts = range(arguments.first, arguments.last, IN_ONE_PROCESS)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        ranges = [(start, min(start + IN_ONE_PROCESS, arguments.last)) for start in starts]
        results = list(pool.map(lambda one: batch(*one), ranges))
    for right, text in results:
        if not right:
            print(text)
    failed = sum(not right for right, _ in results)
    count = arguments.last - arguments.first
    print(f"{count} programs in {time.monotonic() - begin:.0f} s: {failed} of {len(results)} batches failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
