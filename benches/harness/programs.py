"""Loads the programs: each folder of `benches/programs/` is one, described by its `about.py`.

Owns the shape of `about.py` (documented in benches/README.md) and the comparison of results. Runs in the driver and
in every worker, so it needs nothing but the standard library and numpy.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from .targets import Target

FOLDER = Path(__file__).resolve().parents[1] / "programs"

# The file that each kind of system reads. A system is skipped where the program has no file for it.
SOURCES = {"language": "kernel.py", "numba": "numba_kernel.py", "c": "kernel.c", "torch": "torch_kernel.py"}

FUNCTIONS = ("inputs", "reference", "compared", "bytes_moved")

Data = dict[str, Any]


@dataclass(frozen=True)
class Tolerance:
    """`|got - want| <= atol + rtol * |want|` for all but a fraction `stray` of the elements."""

    rtol: float = 0.0
    atol: float = 0.0
    stray: float = 0.0


@dataclass(frozen=True)
class Program:
    name: str
    folder: Path
    summary: str
    title: str
    group: str  # "launch" or "throughput"
    sizes: dict[str, dict[str, int]]  # "full", "quick", "compile" where `compile` is set, "gpu" where one runs it
    inputs: Callable[..., Data]  # size -> every argument of `run`, in order
    reference: Callable[[Data], Data]  # inputs -> expected outputs, by numpy
    outputs: tuple[str, ...]  # names of the arrays that `run` writes
    returns: str | None = None  # numpy dtype of the value that `run` returns
    tolerance: Tolerance = Tolerance()
    fast_math: bool = False  # C is compiled with -ffast-math
    numpy_arguments: bool = False  # arrays reach kernels as numpy arrays
    elements: dict[str, tuple[int, ...]] = field(default_factory=dict)  # last axes that are a vector or a matrix
    without: tuple[str, ...] = ()  # systems that have no such thing
    compared: Callable[[Data], Data] | None = None  # outputs -> what is compared, where they are not unique
    bytes_moved: Callable[..., int] | None = None  # size -> bytes that one call must move
    order: int = 100  # place in the tables, within the group
    compile: bool = False  # also measured as a cold compile
    targets: tuple[Target, ...] = field(default=())
    compile_targets: tuple[Target, ...] = field(default=())

    def source(self, kind: str, system: str) -> Path | None:
        """The file for a system; `None` leaves the system out of the row."""
        path = self.folder / SOURCES[kind]
        return path if path.exists() and system not in self.without else None

    def check(self, got: Data, want: Data, most: int | None = None) -> None:
        """Raises `WrongResult` unless every expected output is there and close enough; of `most` elements each, if given."""
        got = sampled(self.compared(got) if self.compared else got, most)
        for name, expected in want.items():
            if name not in got:
                raise WrongResult(f"{self.name}: no output {name!r}")
            compare(f"{self.name}.{name}", np.asarray(got[name]), np.asarray(expected), self.tolerance)


def sampled(data: Data, most: int | None) -> Data:
    """About `most` evenly spread elements of each array; all of them where it is `None`."""
    if most is None:
        return data
    strides = {name: np.size(value) // most | 1 for name, value in data.items()}
    return {name: np.ravel(value)[:: strides[name]] if strides[name] > 1 else value for name, value in data.items()}


class WrongResult(Exception):
    """A system computed something else than the reference."""


class BadProgram(Exception):
    """A program folder that does not follow the rules."""


def compare(label: str, got: np.ndarray, want: np.ndarray, tolerance: Tolerance) -> None:
    if got.shape != want.shape:
        raise WrongResult(f"{label}: shape {got.shape}, expected {want.shape}")
    exact = tolerance.rtol == 0 and tolerance.atol == 0
    if exact:
        wrong = got != want
    else:
        difference = np.abs(got.astype(np.float64) - want.astype(np.float64))
        # Written so that a NaN counts as wrong.
        wrong = ~(difference <= tolerance.atol + tolerance.rtol * np.abs(want.astype(np.float64)))
    count = int(np.count_nonzero(wrong))
    if count > tolerance.stray * max(want.size, 1):
        first = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise WrongResult(
            f"{label}: {count} of {want.size} elements wrong; at {first} {got[first]}, expected {want[first]}"
        )


def load_module(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadProgram(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def about(name: str) -> ModuleType:
    """The `about.py` of a program, for another that computes the same in another way."""
    return load_module(f"about_{name}", FOLDER / name / "about.py")


def load(name: str) -> Program:
    folder = FOLDER / name
    path = folder / "about.py"
    if not path.exists():
        raise BadProgram(f"there is no program {name!r} (benches/programs/{name}/about.py)")
    module = about(name)
    known = {key for key in Program.__dataclass_fields__ if key not in ("name", "folder", "summary")}
    given = {key.lower(): value for key, value in vars(module).items() if key.isupper() and key[0] != "_"}
    given |= {key: getattr(module, key) for key in FUNCTIONS if hasattr(module, key)}
    if unknown := sorted(set(given) - known):
        raise BadProgram(f"{path}: unknown {', '.join(unknown).upper()}")
    try:
        program = Program(name=name, folder=folder, summary=(module.__doc__ or "").strip(), **given)
    except TypeError as reason:
        raise BadProgram(f"{path}: {reason}") from None
    needed = {"full", "quick"} | ({"compile"} if program.compile else set())
    if missing := sorted(needed - set(program.sizes)):
        raise BadProgram(f"{path}: SIZES lacks {', '.join(missing)}")
    return program


def load_all() -> list[Program]:
    """Every program, launches first, then by ORDER and name."""
    names = sorted(path.parent.name for path in FOLDER.glob("*/about.py"))
    programs = [load(name) for name in names]
    groups = {"launch": 0, "throughput": 1}
    for program in programs:
        if program.group not in groups:
            raise BadProgram(f"{program.folder}/about.py: GROUP is {program.group!r}, not one of {', '.join(groups)}")
    return sorted(programs, key=lambda p: (groups[p.group], p.order, p.name))
