"""The programs under Octants and under Quadrants: the same texts, on their own arrays."""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from . import cholesky, product, vectors
from .rows import Arrays, Row, Size, poisoned

#: Subgroups of a block, for each size of tiles: about as many as the first block column of 92 rows has tiles below the diagonal. Chosen, not measured.
SUBGROUPS = {16: 4, 32: 2}


def blocks(qd: Any, row: Row, size: Size) -> Any:
    """The row's kernel, by blocks."""
    family, _, which = row.name.partition("_")
    if row.name == "cholesky_rows":
        # Quadrants has blocks of powers of two alone.
        subgroups = -(-size["n"] // cholesky.LANES)
        return cholesky.rows(qd, size["n"], 4 if qd.__name__ == "quadrants" else subgroups)
    if family == "cholesky":
        tile = int(which.removeprefix("tiles"))
        return cholesky.tiles(qd, tile, size["n"], SUBGROUPS[tile])
    if family == "product":
        return product.tiles(qd)
    return getattr(vectors, row.name)(qd)


def plain(qd: Any, row: Row, size: Size) -> Any:
    """The row's kernel, by loops that know of no blocks."""
    family = row.name.partition("_")[0]
    if family == "cholesky":
        return cholesky.plain(qd, size["n"])
    if family == "product":
        return product.plain(qd)
    return vectors.copy(qd) if row.name == "copy" else getattr(vectors, f"plain_{row.name}")(qd)


class Bound:
    """A program of a language with its arrays."""

    def __init__(self, qd: ModuleType, row: Row, size: Size, make: Callable[..., Any]) -> None:
        self.qd, self.row, self.size = qd, row, size
        self.kernel = make(qd, row, size)
        self.inputs: dict[str, Any] = {}
        self.outputs: dict[str, Any] = {}

    def fill(self, inputs: Arrays) -> None:
        """Takes these, and makes every result a wrong one."""
        outputs = {name: poisoned(*what) for name, what in self.row.outputs(**self.size).items()}
        for arrays, values in ((self.inputs, inputs), (self.outputs, outputs)):
            for name, value in values.items():
                if name not in arrays:
                    dtype = {"float32": self.qd.f32, "int32": self.qd.i32}[value.dtype.name]
                    arrays[name] = self.qd.ndarray(dtype, value.shape)
                arrays[name].from_numpy(value)

    def run(self) -> None:
        self.kernel(*self.inputs.values(), *self.outputs.values())

    def finish(self) -> None:
        self.qd.sync()

    def results(self) -> Arrays:
        return {name: np.asarray(array.to_numpy()) for name, array in self.outputs.items()}


def start(system: str, arch: str) -> Callable[[Row, Size], Bound]:
    """What binds rows under a system: ``octants``, ``quadrants``; ``plain`` is Octants without blocks, ``reference`` Octants' interpreter."""
    module = importlib.import_module("quadrants" if system == "quadrants" else "octants")
    arch = "reference" if system == "reference" else arch
    # As programs run: machine code from a cache is assembled in another way. The folder is this measurement's own.
    folder = os.path.join(os.environ.get("XDG_CACHE_HOME") or tempfile.mkdtemp(), system)
    module.init(
        arch=getattr(module, arch),
        offline_cache=True,
        offline_cache_file_path=folder,
        enable_fallback=False,
        log_level="error",
    )
    make = plain if system == "plain" else blocks
    return lambda row, size: Bound(module, row, size, make)
