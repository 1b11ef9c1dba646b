"""The figures of a GPU: which program each times, in which unit, what was measured before, and what is asked of it.

`BEFORE` figures are those of an H200 with quadrants 1.3.3, torch 2.11 and warp 1.19; they stand beside a new run where a system is not there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from . import programs
from .figures import Figure

#: Seconds in a unit of time, amounts in a unit of rate.
TIMES = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}
RATES = {"GB/s": 1e9, "G interactions/s": 1e9, "G steps/s": 1e9, "Gpix/s": 1e9, "M particles/s": 1e6, "M/s": 1e6}

Size = dict[str, int]
Values = dict[str, float]


@dataclass(frozen=True)
class AtLeast:
    """A rate: a number, or a multiple of a system's, measured beside it or before."""

    times: float
    of: str | None = None

    def __str__(self) -> str:
        return f"≥ {self.times:g}" if self.of is None else f"≥ {self.times:g} × {self.of}"

    def reached(self, values: Values, before: Values) -> bool | None:
        limit = self.times if self.of is None else scaled(self.times, self.of, values, before)
        return None if limit is None or "octants" not in values else values["octants"] >= limit


@dataclass(frozen=True)
class AtMost:
    """A time: a number, or a fraction of a system's, measured beside it or before."""

    times: float
    of: str | None = None

    def __str__(self) -> str:
        return f"≤ {self.times:g}" if self.of is None else f"{1 / self.times:g}× faster than {self.of}"

    def reached(self, values: Values, before: Values) -> bool | None:
        limit = self.times if self.of is None else scaled(self.times, self.of, values, before)
        return None if limit is None or "octants" not in values else values["octants"] <= limit


def scaled(times: float, of: str, values: Values, before: Values) -> float | None:
    value = values.get(of, before.get(of))
    return None if value is None else times * value


@dataclass
class Row:
    name: str
    title: str
    unit: str
    program: str | None  # None: import and init
    target: AtLeast | AtMost | None = None
    before: Values = field(default_factory=dict)
    amount: Callable[[Size], float] | None = None  # what a call does, for a rate
    group: str = "throughput"
    figure: Figure = field(default_factory=lambda: Figure("", "", "", "s", ()))

    def values(self, seconds: Values, size: str) -> Values:
        """Of the row's unit."""
        if self.amount is None:
            return {system: value / TIMES[self.unit] for system, value in seconds.items()}
        assert self.program is not None
        done = self.amount(programs.load(self.program).sizes[size]) / RATES[self.unit]
        return {system: done / value for system, value in seconds.items()}

    def to_json(self, size: str) -> dict[str, Any]:
        value = self.values(self.figure.median(), size)
        # Figures of before are those of the GPU's sizes.
        before = self.before if size == "gpu" else {}
        return {
            "name": self.name,
            "title": self.title,
            "unit": self.unit,
            "more_is_better": self.amount is not None,
            "value": value,
            "best": self.values(self.figure.best(), size),
            "seconds": self.figure.median(),
            "before": before,
            "target": str(self.target) if self.target else None,
            "reached": self.target.reached(value, before) if self.target else None,
            "failures": self.figure.failures,
        }


def moved(name: str) -> Callable[[Size], float]:
    """Bytes that a call of a program must move."""

    def amount(size: Size) -> float:
        function = programs.load(name).bytes_moved
        assert function is not None
        return function(**size)

    return amount


ROWS = [
    Row("start", "import + init", "s", None, AtMost(0.6), {"quadrants": 5.7, "warp": 1.9}, group="start"),
    Row(
        "compile_saxpy", "compile saxpy", "ms", "saxpy", AtMost(0.25, "quadrants"), {"quadrants": 155}, group="compile"
    ),
    Row(
        "compile_mpm88",
        "compile MPM-88",
        "ms",
        "mpm88_fields",
        AtMost(0.25, "quadrants"),
        {"quadrants": 580},
        group="compile",
    ),
    Row(
        "compile_svd3", "compile 3×3 SVD", "ms", "svd3", AtMost(0.25, "quadrants"), {"quadrants": 549}, group="compile"
    ),
    Row(
        "launch_none",
        "launch, no argument",
        "µs",
        "launch_none",
        AtMost(2.5),
        {"quadrants": 4.6, "warp": 14},
        group="launch",
    ),
    Row("launch_one", "launch, one array", "µs", "launch_one", AtMost(3), {"quadrants": 14}, group="launch"),
    Row(
        "launch_four",
        "launch, four arrays and two scalars",
        "µs",
        "launch_four",
        AtMost(3.5),
        {"quadrants": 27, "warp": 25},
        group="launch",
    ),
    Row("launch_return", "launch, scalar return", "µs", "launch_return", AtMost(12), {"quadrants": 25}, group="launch"),
    Row(
        "fill",
        "fill, 2²⁸ f32",
        "GB/s",
        "fill",
        AtLeast(0.95, "torch"),
        {"quadrants": 3239, "torch": 4529, "warp": 1616},
        moved("fill"),
    ),
    Row(
        "saxpy",
        "saxpy, 2²⁸ f32",
        "GB/s",
        "saxpy",
        AtLeast(0.95, "torch"),
        {"quadrants": 3379, "torch": 4312, "warp": 3051},
        moved("saxpy"),
    ),
    Row(
        "sum",
        "sum into an array, 2²⁸ f32",
        "GB/s",
        "sum_array",
        AtLeast(0.95, "torch"),
        {"quadrants": 2238, "torch": 4121, "warp": 3246},
        moved("sum_array"),
    ),
    Row("sum_return", "sum returned, 2²⁸ f32", "GB/s", "sum_return", amount=moved("sum_return")),
    Row(
        "stencil",
        "5-point stencil, 16384², arrays",
        "GB/s",
        "stencil",
        AtLeast(3800),
        {"quadrants": 2002, "warp": 1194},
        moved("stencil"),
    ),
    Row(
        "stencil_fields",
        "5-point stencil, 16384², fields",
        "GB/s",
        "stencil_fields",
        AtLeast(3800),
        {"quadrants": 2002},
        moved("stencil_fields"),
    ),
    Row(
        "nbody",
        "n-body, 65,536 bodies",
        "G interactions/s",
        "nbody",
        AtLeast(1200),
        {"quadrants": 460, "warp": 555},
        lambda size: size["n"] ** 2,
    ),
    Row(
        "lcg",
        "integer LCG",
        "G steps/s",
        "lcg",
        AtLeast(2500),
        {"quadrants": 1867, "warp": 2986},
        lambda size: 1000 * size["n"],
    ),
    Row(
        "julia",
        "Julia set",
        "Gpix/s",
        "julia",
        AtLeast(1.2, "quadrants"),
        {"quadrants": 67.9},
        lambda size: size["n"] ** 2,
    ),
    Row(
        "mpm88_fields",
        "MPM-88, fields, 1M particles, 512²",
        "M particles/s",
        "mpm88_fields",
        AtLeast(3500),
        {"quadrants": 2326, "warp": 2677},
        lambda size: size["particles"],
    ),
    Row(
        "svd3",
        "3×3 SVD, 4M matrices",
        "M/s",
        "svd3",
        AtLeast(28_000),
        {"quadrants": 13_222, "warp": 27_789},
        lambda size: size["n"],
    ),
    # As many bytes as the decompositions above, and nothing to compute: what memory gives them.
    Row("spread", "as many bytes as the SVD, copied", "M/s", "spread", None, {}, lambda size: size["n"] // 9),
    # 0.8 of what a sum reads.
    Row(
        "histogram", "histogram, 2²⁶ keys, 1024 bins", "GB/s", "histogram", AtLeast(0.8 * 4121), {}, moved("histogram")
    ),
]
