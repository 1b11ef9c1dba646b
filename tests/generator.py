"""Random valid kernels whose results are known: the same text runs as a plain Python function on numpy scalars.

Integers are ``i32`` (numpy's ``int32`` wraps in the same way), reals are ``f64`` without ``fast_math`` (the same roundings). Reals are
kept in bounds so that no NaN arises, and every location is written by one iteration only, or by an order-independent atomic.

    python tests/generator.py FIRST LAST     checks the seeds of a range on every device and level
"""

from __future__ import annotations

import importlib.util
import random
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

HEADER = """import octants as oc

I32 = oc.types.ndarray(dtype=oc.i32, ndim=1)
F64 = oc.types.ndarray(dtype=oc.f64, ndim=1)
I32x2 = oc.types.ndarray(dtype=oc.i32, ndim=2)
"""


class Program:
    """One program: a few funcs and a kernel."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.seed = seed
        self.lines: list[str] = []
        self.names = 0
        self.funcs: list[tuple[str, list[str], str]] = []
        self.budget = self.random.randint(15, 60)

    # ---- expressions: `scope` maps a type to the names that may be read -----------------------------------------------

    def pick(self, *choices):
        return self.random.choice(choices)

    def integer(self, scope, depth=0) -> str:
        r = self.random
        if depth > 3 or r.random() < 0.3:
            # `z` is a zero of type i32: what is added to it wraps in Python too, where a literal alone would not.
            literal = r.choice([0, 1, 2, 3, 7, 100, 65537, 2147483647])
            return self.pick(*scope["int"], *(f"(z + {index})" for index in scope["index"]), f"(z + {literal})")
        a = self.integer(scope, depth + 1)
        kind = r.randrange(12)
        if kind < 5:
            return f"({a} {self.pick('+', '-', '*', '&', '|', '^', '//', '%')} {self.integer(scope, depth + 1)})"
        if kind == 5:
            return f"({a} {self.pick('<<', '>>')} {r.randrange(31)})"
        if kind == 6:
            return f"{self.pick('min', 'max')}({a}, {self.integer(scope, depth + 1)})"
        if kind == 7:
            return f"({self.pick('-', '~')}{a})"
        if kind == 8:
            return f"({a} if {self.condition(scope, depth + 1)} else {self.integer(scope, depth + 1)})"
        if kind == 9:
            return f"n[({a}) & 15]"
        if kind == 10:
            return f"abs({a})"
        return self.call("int", scope, depth) or a

    def real(self, scope, depth=0) -> str:
        r = self.random
        if depth > 3 or r.random() < 0.3:
            return self.pick(*scope["real"], repr(r.choice([0.0, 1.0, -0.5, 3.25, 1e-3, 100.0])))
        a = self.real(scope, depth + 1)
        kind = r.randrange(11)
        if kind < 4:
            return f"({a} {self.pick('+', '-', '*')} {self.real(scope, depth + 1)})"
        if kind == 4:
            return f"({a} / (abs({self.real(scope, depth + 1)}) + 1.0))"
        if kind == 5:
            return f"oc.sqrt(abs({a}))"
        if kind == 6:
            return f"oc.{self.pick('floor', 'ceil')}({a})"
        if kind == 7:
            return f"({a} if {self.condition(scope, depth + 1)} else {self.real(scope, depth + 1)})"
        if kind == 8:
            return f"x[({self.integer(scope, depth + 1)}) & 15]"
        if kind == 9:
            return f"({a} + {self.integer(scope, depth + 1)})"
        return self.call("real", scope, depth) or a

    def condition(self, scope, depth=0) -> str:
        r = self.random
        kind = r.randrange(6)
        if depth > 3 or kind < 3:
            of = self.integer if r.random() < 0.6 else self.real
            return f"({of(scope, depth + 1)} {self.pick('<', '<=', '>', '>=', '==', '!=')} {of(scope, depth + 1)})"
        if kind == 3:
            return f"(not {self.condition(scope, depth + 1)})"
        if kind == 4:
            return f"({self.condition(scope, depth + 1)} {self.pick('and', 'or')} {self.condition(scope, depth + 1)})"
        a, b, c = (self.integer(scope, depth + 2) for _ in range(3))
        return f"({a} < {b} <= {c})"

    def call(self, result: str, scope, depth) -> str | None:
        fitting = [func for func in self.funcs if func[2] == result]
        if not fitting or depth > 2:
            return None
        name, params, _ = self.random.choice(fitting)
        make = {"int": self.integer, "real": self.real}
        return f"{name}({', '.join(['x', 'n'] + [make[p](scope, depth + 1) for p in params])})"

    # ---- statements -----------------------------------------------------------------------------------------------------

    def fresh(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def bounded(self, expression: str) -> str:
        return f"oc.max(oc.min({expression}, 1000.0), -1000.0)"

    def block(self, scope, indent: int, loops: list[str], count: int | None = None) -> None:
        scope = {kind: list(names) for kind, names in scope.items()}
        for _ in range(count or self.random.randint(1, 4)):
            self.statement(scope, indent, loops)

    def emit(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def statement(self, scope, indent: int, loops: list[str]) -> None:
        r = self.random
        self.budget -= 1
        kind = r.randrange(14 if self.budget > 0 and indent < 6 else 7)
        if kind < 2:
            name = self.fresh("i")
            self.emit(indent, f"{name} = {self.integer(scope)} + z")
            scope["int"].append(name)
        elif kind < 4:
            name = self.fresh("r")
            self.emit(indent, f"{name} = {self.bounded(self.real(scope))}")
            scope["real"].append(name)
        elif kind < 6 and scope["assignable"]:
            name = r.choice(scope["assignable"])
            if name.startswith("i"):
                self.emit(indent, f"{name} {self.pick('=', '+=', '-=', '^=', '|=', '&=', '*=')} {self.integer(scope)}")
            else:
                self.emit(indent, f"{name} = {self.bounded(self.real(scope))}")
        elif kind == 6 and loops:
            if loops[-1] == "parallel":
                self.emit(indent, f"if {self.condition(scope)}:")
                self.emit(indent + 1, "continue")
            else:
                self.emit(indent, f"if {self.condition(scope)}:")
                self.emit(indent + 1, self.pick("break", "continue") if loops[-1] == "for" else "break")
        elif kind < 10:
            self.emit(indent, f"if {self.condition(scope)}:")
            self.block(scope, indent + 1, loops)
            if r.random() < 0.4:
                self.emit(indent, f"elif {self.condition(scope)}:")
                self.block(scope, indent + 1, loops)
            if r.random() < 0.5:
                self.emit(indent, "else:")
                self.block(scope, indent + 1, loops)
        elif kind < 12:
            index = self.fresh("k")
            bound = self.pick(str(r.randint(0, 6)), f"(({self.integer(scope)}) & 7)")
            self.emit(indent, f"for {index} in range({bound}):")
            inner = scope | {"index": [*scope["index"], index]}
            self.block(inner, indent + 1, [*loops, "for"])
        elif kind == 12:
            counter = self.fresh("c")
            self.emit(indent, f"{counter} = 0")
            self.emit(indent, f"while {counter} < {r.randint(1, 6)} and {self.condition(scope)}:")
            self.emit(indent + 1, f"{counter} += 1")
            inner = scope | {"index": [*scope["index"], counter]}
            self.block(inner, indent + 1, [*loops, "while"])
        else:
            self.emit(indent, f"for {self.fresh('s')} in oc.static(range({r.randint(1, 3)})):")
            index = f"s{self.names}"
            self.block(scope | {"index": [*scope["index"], index]}, indent + 1, [])

    def func(self) -> None:
        name = self.fresh("f")
        params = [self.pick("int", "real") for _ in range(self.random.randint(1, 3))]
        result = self.pick("int", "real")
        names = [self.fresh("p") for _ in params]
        self.emit(0, "")
        self.emit(0, "")
        self.emit(0, "@oc.func")
        self.emit(0, f"def {name}({', '.join(['x', 'n', *names])}):")
        self.emit(1, "z = n[0] * 0")
        scope = {"int": ["n[1]"], "real": ["x[1]"], "index": [], "assignable": []}
        for param, kind in zip(names, params, strict=True):
            local = self.fresh("i" if kind == "int" else "r")
            self.emit(1, f"{local} = {param} + z" if kind == "int" else f"{local} = {self.bounded(param)}")
            scope[kind].append(local)
            scope["assignable"].append(local)
        self.block(scope, 1, [])
        final = self.integer(scope) if result == "int" else self.bounded(self.real(scope))
        self.emit(1, f"return {final}")
        self.funcs.append((name, params, result))

    def text(self) -> str:
        for _ in range(self.random.randint(0, 2)):
            self.func()
        self.emit(0, "")
        self.emit(0, "")
        self.emit(0, "@oc.kernel")
        self.emit(
            0,
            "def kernel(x: F64, n: I32, a: oc.i32, b: oc.f64, out_i: I32, out_r: F64, grid: I32x2, bins: I32) -> oc.i32:",
        )
        scope = {"int": ["a", "n[2]"], "real": ["b", "x[2]"], "index": [], "assignable": []}
        self.emit(1, "z = n[0] * 0")
        self.emit(1, "total = z * 1")
        for _ in range(self.random.randint(1, 3)):
            self.section(scope)
        self.emit(1, "return total")
        return HEADER + "\n".join(self.lines) + "\n"

    def section(self, scope) -> None:
        """A parallel loop, with a variable of each type that its body may assign."""
        two = self.random.random() < 0.3
        i, j = self.fresh("p"), self.fresh("q")
        if two:
            self.emit(1, f"for {i}, {j} in oc.ndrange((1, 6), 5):")
        else:
            self.emit(1, f"for {i} in range({self.pick('out_i.shape[0]', '16', '(a & 15)')}):")
        integer, real = self.fresh("i"), self.fresh("r")
        self.emit(2, f"{integer} = {i} + z")
        self.emit(2, f"{real} = x[{i} & 15] * 0.5")
        indices = [i, j] if two else [i]
        inner = {kind: list(names) for kind, names in scope.items()}
        inner["int"].append(integer)
        inner["real"].append(real)
        inner["index"] = indices
        inner["assignable"] = [integer, real]
        # What the body writes is read by no other iteration.
        self.block(inner, 2, ["parallel"], self.random.randint(2, 5))
        if two:
            self.emit(2, f"grid[{i}, {j}] {self.pick('=', '+=')} {self.integer(inner)}")
        else:
            self.emit(2, f"out_i[{i}] {self.pick('=', '+=')} {self.integer(inner)}")
            self.emit(2, f"out_r[{i}] = {self.bounded(self.real(inner))}")
        update = self.pick("bins[({0}) & 3] += {1}", "bins[({0}) & 3] ^= {1}", "total += ({0}) ^ {1}", "total ^= {1}")
        self.emit(2, update.format(self.integer(inner, 2), self.integer(inner, 2)))


def arguments(seed: int) -> dict:
    rng = np.random.default_rng(seed)
    return {
        "x": np.round(rng.normal(0, 10, 16), 3),
        "n": rng.integers(-(2**31), 2**31, 16).astype(np.int32) >> rng.integers(0, 31, 16).astype(np.int32),
        "a": np.int32(rng.integers(-100, 100)),
        "b": np.float64(np.round(rng.normal(0, 3), 2)),
        "out_i": np.zeros(16, np.int32),
        "out_r": np.zeros(16),
        "grid": np.zeros((6, 5), np.int32),
        "bins": np.zeros(4, np.int32),
    }


def load(text: str, folder: Path, name: str):
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def in_python(module, given: dict) -> int:
    """Runs the kernel as the plain function that it was written as, funcs too."""
    for name, value in vars(module).copy().items():
        if hasattr(value, "__wrapped__") and not name.startswith("oc"):
            setattr(module, name, value.__wrapped__)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return int(module.kernel(**given))


def check(seed: int, folder: Path) -> None:
    """Raises if a device or a level computes something else than Python."""
    import octants as oc

    text = Program(seed).text()
    expected = arguments(seed)
    module = load(text, folder, f"generated_{seed}")
    kernel = module.kernel
    returned = in_python(module, expected)
    module = load(text, folder, f"generated_{seed}")
    kernel = module.kernel
    for arch, level in ((oc.reference, 1), (oc.cpu, 0), (oc.cpu, 1)):
        oc.init(arch=arch, opt_level=level, default_fp=oc.f64, fast_math=False, log_level="error", unrolling_limit=0)
        given = arguments(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = kernel(**given)
        where = f"seed {seed} on {arch.name} at level {level}"
        assert result == returned, f"{where}: returned {result}, Python {returned}\n{text}"
        for name in ("out_i", "out_r", "grid", "bins"):
            if not np.array_equal(given[name], expected[name]):
                raise AssertionError(f"{where}: {name} is\n{given[name]}\nand Python has\n{expected[name]}\n{text}")


def main() -> None:
    first, last = int(sys.argv[1]), int(sys.argv[2])
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, last):
            try:
                check(seed, Path(folder))
            except Exception as error:  # noqa: BLE001
                failed += 1
                print(f"---- seed {seed}: {type(error).__name__}: {error}\n", flush=True)
    print(f"{last - first - failed} programs agree, {failed} do not")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
