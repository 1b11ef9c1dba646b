"""The Cholesky factors and the products by Warp's tiles, where its build has them. Its mathematics is the vendor's library for devices, which the wheel brings."""

# type: ignore  (kernels: annotations are values of the language)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from .rows import Arrays, Row, Size, poisoned

#: Threads of a block, and the tile of a product: what Warp's own examples take.
THREADS, TILE, DEPTH = 128, 64, 16


def factor(n: int) -> Any:
    @wp.kernel
    def run(a: wp.array3d(dtype=wp.float32), f: wp.array3d(dtype=wp.float32)):
        m = wp.tid()
        matrix = wp.tile_load(a[m], shape=(n, n), storage="shared")
        wp.tile_store(f[m], wp.tile_cholesky(matrix))

    return run


def product() -> Any:
    @wp.kernel
    def run(a: wp.array2d(dtype=wp.float32), b: wp.array2d(dtype=wp.float32), c: wp.array2d(dtype=wp.float32)):
        i, j = wp.tid()
        sums = wp.tile_zeros(shape=(TILE, TILE), dtype=wp.float32)
        for k in range(a.shape[1] // DEPTH):
            left = wp.tile_load(a, shape=(TILE, DEPTH), offset=(i * TILE, k * DEPTH))
            right = wp.tile_load(b, shape=(DEPTH, TILE), offset=(k * DEPTH, j * TILE))
            wp.tile_matmul(left, right, sums)
        wp.tile_store(c, sums, offset=(i * TILE, j * TILE))

    return run


class Bound:
    """A program of Warp with its arrays."""

    def __init__(self, device: str, row: Row, size: Size) -> None:
        self.device, self.row, self.size = device, row, size
        n = size["n"]
        if row.name == "cholesky_tiles16":
            self.kernel, self.dim = factor(n), [size["count"]]
        elif row.name.startswith("product"):
            self.kernel, self.dim = product(), [n // TILE, n // TILE]
        else:
            raise LookupError(f"no program of {row.name}")
        self.inputs: dict[str, Any] = {}
        self.outputs: dict[str, Any] = {}

    def fill(self, inputs: Arrays) -> None:
        outputs = {name: poisoned(*what) for name, what in self.row.outputs(**self.size).items()}
        self.inputs = {name: wp.array(value, device=self.device) for name, value in inputs.items()}
        self.outputs = {name: wp.array(value, device=self.device) for name, value in outputs.items()}

    def run(self) -> None:
        arrays = [*self.inputs.values(), *self.outputs.values()]
        wp.launch_tiled(self.kernel, dim=self.dim, inputs=arrays, block_dim=THREADS, device=self.device)

    def finish(self) -> None:
        wp.synchronize_device(self.device)

    def results(self) -> Arrays:
        found = {name: array.numpy() for name, array in self.outputs.items()}
        return {name: np.tril(value) if name == "f" else value for name, value in found.items()}


def start(arch: str) -> Callable[[Row, Size], Bound]:
    wp.config.quiet = True
    wp.init()
    device = "cuda:0" if arch == "cuda" else "cpu"
    return lambda row, size: Bound(device, row, size)
