"""What is measured: the data of each program, what counts as right, what a run amounts to, and what is asked of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .vectors import ADDED, BINS, ROW, SCANNED, SORTED

Arrays = dict[str, np.ndarray]
Size = dict[str, int]

#: Parts of results that are held against numpy's where all of them would take longer than the measurement.
COMPARED = 256

#: Amounts in a unit.
UNITS = {"GFLOP/s": 1e9, "GB/s": 1e9, "M/s": 1e6}


@dataclass(frozen=True)
class Target:
    """At least so many times what these systems reach, each in a row of its own or in this one."""

    times: float
    systems: tuple[str, ...]
    row: str | None = None

    def __str__(self) -> str:
        of = " or ".join(self.systems)
        return f"≥ {self.times:g} × {of}{f' ({self.row})' if self.row else ''}"


@dataclass(frozen=True)
class Row:
    """One program, in every system that has it. What it gives is compared with f64 as a fraction of `tolerance`'s scale."""

    name: str
    title: str
    unit: str
    sizes: dict[str, Size]
    #: The arrays that a run reads, drawn anew.
    inputs: Callable[..., Arrays]
    #: Shapes and types of those that it writes.
    outputs: Callable[..., dict[str, tuple[tuple[int, ...], str]]]
    #: How far off results are; NaN where something was not written.
    error: Callable[[Arrays, Arrays], float]
    tolerance: float
    #: What a run amounts to: operations, bytes or things.
    amount: Callable[..., float]
    targets: tuple[Target, ...] = ()
    cpu_targets: tuple[Target, ...] = (Target(0.5, ("plain",)), Target(10, ("reference",)))


def largest(difference: np.ndarray) -> float:
    return float(np.max(np.abs(difference), initial=0.0)) if np.isfinite(difference).all() else float("nan")


# --- Cholesky ---------------------------------------------------------------------------------------------------------


def definite(rng: np.random.Generator, n: int, count: int) -> Arrays:
    m = rng.standard_normal((count, n, n), dtype=np.float32)
    return {"a": m @ m.transpose(0, 2, 1) / np.float32(n) + np.eye(n, dtype=np.float32)}


def factor_error(inputs: Arrays, outputs: Arrays) -> float:
    return largest(outputs["f"] - np.linalg.cholesky(inputs["a"].astype(np.float64)))


def cholesky(name: str, title: str, *targets: Target) -> Row:
    return Row(
        f"cholesky_{name}",
        f"Cholesky of 92 × 92, f32, {title}",
        "GFLOP/s",
        {"gpu": {"n": 92, "count": 4096}, "quick": {"n": 92, "count": 64}, "tiny": {"n": 92, "count": 1}},
        definite,
        lambda n, count: {"f": ((count, n, n), "float32")},
        factor_error,
        2e-5,
        lambda n, count: count * n**3 / 3,
        targets,
    )


# --- the product ------------------------------------------------------------------------------------------------------


def factors(rng: np.random.Generator, n: int, depth: int) -> Arrays:
    return {name: rng.random(shape, dtype=np.float32) * 2 - 1 for name, shape in (("a", (n, depth)), ("b", (depth, n)))}


def product_error(inputs: Arrays, outputs: Arrays) -> float:
    """Some rows, against f64, as a fraction of what random walks of n steps come to; and all of it is there."""
    a, b, c = inputs["a"], inputs["b"], outputs["c"]
    if not np.isfinite(c).all():
        return float("nan")
    rows = np.random.default_rng().choice(len(c), min(len(c), COMPARED), replace=False)
    return largest(c[rows] - a[rows].astype(np.float64) @ b.astype(np.float64)) / a.shape[1] ** 0.5


def product(n: int) -> Row:
    return Row(
        f"product_{n}",
        f"product of {n} × {n}, f32",
        "GFLOP/s",
        {"gpu": {"n": n, "depth": n}, "quick": {"n": n // 8, "depth": n // 8}, "tiny": {"n": 128, "depth": 64}},
        factors,
        lambda n, depth: {"c": ((n, n), "float32")},
        product_error,
        1e-5,
        lambda n, depth: 2.0 * n * n * depth,
        (Target(1.2, ("quadrants",)), Target(0.5, ("torch",))),
    )


# --- long arrays ------------------------------------------------------------------------------------------------------

LONG = {"gpu": {"n": 1 << 28}, "quick": {"n": 1 << 22}, "tiny": {"n": ADDED}}


def reals(rng: np.random.Generator, n: int) -> Arrays:
    return {"x": rng.random(n, dtype=np.float32)}


def total_error(inputs: Arrays, outputs: Arrays) -> float:
    wanted = inputs["x"].sum(dtype=np.float64)
    return largest(outputs["total"] - wanted) / wanted


def scan_error(inputs: Arrays, outputs: Arrays) -> float:
    x, y = (array.reshape(-1, SCANNED) for array in (inputs["x"], outputs["y"]))
    if not np.isfinite(y).all():
        return float("nan")
    some = np.random.default_rng().choice(len(x), min(len(x), COMPARED), replace=False)
    return largest(y[some] - np.cumsum(x[some], axis=1, dtype=np.float64)) / SCANNED


def sorted_error(inputs: Arrays, outputs: Arrays) -> float:
    x, y = (array.reshape(-1, SORTED) for array in (inputs["x"], outputs["y"]))
    return largest(y - np.sort(x, axis=1))


def counts_error(inputs: Arrays, outputs: Arrays) -> float:
    return largest(outputs["counts"] - np.bincount(inputs["keys"], minlength=BINS))


def row_sums_error(inputs: Arrays, outputs: Arrays) -> float:
    return largest(outputs["y"] - inputs["x"].sum(axis=1, dtype=np.float64)) / ROW


MEMORY = Target(0.95, ("octants", "torch"), "copy")

ROWS = [
    cholesky("tiles16", "tiles of 16 × 16", Target(1.2, ("quadrants",))),
    cholesky("tiles32", "tiles of 32 × 32", Target(1.2, ("quadrants",), "cholesky_tiles16")),
    cholesky("rows", "a row on each thread", Target(1.2, ("quadrants",), "cholesky_tiles16")),
    *(product(n) for n in (2048, 4096, 8192)),
    Row(
        "copy",
        "copy, 2²⁸ f32",
        "GB/s",
        LONG,
        reals,
        lambda n: {"y": ((n,), "float32")},
        lambda inputs, outputs: largest(outputs["y"] - inputs["x"]),
        0.0,
        lambda n: 8.0 * n,
        cpu_targets=(),
    ),
    Row(
        "reduce",
        "sum by blocks, 2²⁸ f32",
        "GB/s",
        LONG,
        reals,
        lambda n: {"partial": ((n // ADDED,), "float32"), "total": ((1,), "float32")},
        total_error,
        1e-5,
        lambda n: 4.0 * n,
        (MEMORY,),
    ),
    Row(
        "scan",
        f"running sums of {SCANNED} by blocks, 2²⁸ f32",
        "GB/s",
        LONG,
        reals,
        lambda n: {"y": ((n,), "float32")},
        scan_error,
        1e-5,
        lambda n: 8.0 * n,
        (MEMORY,),
    ),
    Row(
        "histogram",
        f"histogram of {BINS} bins in shared memory, 2²⁶ keys",
        "GB/s",
        LONG | {"gpu": {"n": 1 << 26}},
        lambda rng, n: {"keys": rng.integers(0, BINS, n, dtype=np.int32)},
        lambda n: {"counts": ((BINS,), "int32")},
        counts_error,
        0.0,
        lambda n: 4.0 * n,
    ),
    Row(
        "row_sums",
        f"sums of rows of {ROW} by subgroups, 2²⁸ f32",
        "GB/s",
        {"gpu": {"n": 1 << 20}, "quick": {"n": 1 << 14}, "tiny": {"n": 64}},
        lambda rng, n: {"x": rng.random((n, ROW), dtype=np.float32)},
        lambda n: {"y": ((n,), "float32")},
        row_sums_error,
        1e-6,
        lambda n: 4.0 * n * ROW,
        (MEMORY,),
    ),
    Row(
        "sort",
        f"bitonic sorts of {SORTED} by blocks, 2²⁴ f32",
        "M/s",
        LONG | {"gpu": {"n": 1 << 24}, "quick": {"n": 1 << 18}, "tiny": {"n": SORTED}},
        reals,
        lambda n: {"y": ((n,), "float32")},
        sorted_error,
        0.0,
        lambda n: float(n),
        (Target(1.2, ("quadrants",)),),
    ),
]

#: The compile time of a kernel has a row of its own: it is taken in fresh processes.
COMPILED = "compile"
FASTER = 4.0


def by_name() -> dict[str, Row]:
    return {row.name: row for row in ROWS}


def poisoned(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """An output before a run: nothing that a result is."""
    return np.full(shape, np.nan if np.dtype(dtype).kind == "f" else -7, dtype)


def check(row: Row, inputs: Arrays, outputs: Arrays) -> None:
    """Raises `ValueError` unless results are right. A NaN is not."""
    error = row.error(inputs, outputs)
    if not error <= row.tolerance:
        raise ValueError(f"{row.name}: wrong by {error:.3g}, and may be by {row.tolerance:g}")
