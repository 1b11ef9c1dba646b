"""Julia set, {n:,} x {n:,} pixels, at most 256 iterations of z = z * z + c."""

import numpy as np
from harness.programs import Tolerance
from harness.targets import SpeedOf, TimesBetter

TITLE = "Julia set"
GROUP = "throughput"
ORDER = 8
SIZES = {"full": {"n": 1024}, "quick": {"n": 512}, "compile": {"n": 16}}
OUTPUTS = ("image",)
# Neighbouring orbits part exponentially, so contracted arithmetic changes the count of pixels near the boundary.
TOLERANCE = Tolerance(stray=0.05)
FAST_MATH = True
TARGETS = (SpeedOf(0.9, "c"),)
COMPILE = True
COMPILE_TARGETS = (TimesBetter(6, "quadrants"),)


def inputs(n):
    return {"image": np.zeros((n, n), np.int32), "cx": np.float32(-0.8), "cy": np.float32(0.156)}


def reference(data):
    rows, columns = data["image"].shape
    scale = np.float32(3) / np.float32(rows)
    x = np.broadcast_to(np.arange(columns, dtype=np.float32) * scale - np.float32(1.5), (rows, columns)).copy()
    y = np.broadcast_to((np.arange(rows, dtype=np.float32) * scale - np.float32(1.5))[:, None], (rows, columns)).copy()
    count = np.zeros((rows, columns), np.int32)
    for _ in range(256):
        inside = x * x + y * y < np.float32(4)
        xi, yi = x[inside], y[inside]
        x[inside], y[inside] = xi * xi - yi * yi + data["cx"], np.float32(2) * xi * yi + data["cy"]
        count[inside] += 1
    return {"image": count}
