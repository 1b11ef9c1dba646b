"""Semi-Lagrangian advection of a {n:,} x {n:,} grid: back along the velocity in three stages, with bilinear samples."""

import numpy as np
from harness.programs import Tolerance
from harness.targets import TimesBetter

TITLE = "advection, fields"
GROUP = "throughput"
ORDER = 14
SIZES = {"full": {"n": 1024}, "quick": {"n": 256}}
OUTPUTS = ("moved",)
TOLERANCE = Tolerance(rtol=1e-3, atol=1e-3, stray=1e-3)
TARGETS = (TimesBetter(1, "quadrants"),)


def inputs(n):
    random = np.random.default_rng(0)
    velocity = (4.0 * random.random((n, n, 2)) - 2.0).astype(np.float32)
    quantity = random.random((n, n)).astype(np.float32)
    return {"velocity": velocity, "quantity": quantity, "moved": np.zeros((n, n), dtype=np.float32)}


def reference(data):
    velocity, quantity = (data[name].astype(np.float64) for name in ("velocity", "quantity"))
    n = len(quantity)
    start = np.stack(np.mgrid[0:n, 0:n], -1) + 0.5

    def sample(grid, at):
        corner = np.floor(at - 0.5)
        part = at - 0.5 - corner
        i, j = np.moveaxis(corner.astype(int), -1, 0)
        x, y = (part[..., axis].reshape(part.shape[:2] + (1,) * (grid.ndim - 2)) for axis in (0, 1))
        near = [[grid[np.clip(i + a, 0, n - 1), np.clip(j + b, 0, n - 1)] for b in (0, 1)] for a in (0, 1)]
        low, high = (near[0][b] + x * (near[1][b] - near[0][b]) for b in (0, 1))
        return low + y * (high - low)

    first = sample(velocity, start)
    second = sample(velocity, start - 0.5 * first)
    third = sample(velocity, start - 0.75 * second)
    end = start - (2 / 9 * first + 1 / 3 * second + 4 / 9 * third)
    return {"moved": sample(quantity, end).astype(np.float32)}
