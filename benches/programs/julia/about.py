"""Julia set, {n:,} x {n:,} pixels, at most 256 iterations of z = z * z + c."""

import numpy as np
from harness.programs import Tolerance
from harness.targets import SpeedOf, TimesBetter

TITLE = "Julia set"
GROUP = "throughput"
ORDER = 8
SIZES = {"full": {"n": 1024}, "quick": {"n": 512}, "compile": {"n": 16}, "gpu": {"n": 8192}}
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
    across, down = (np.arange(n, dtype=np.float32)[_checked(rows)] * scale - np.float32(1.5) for n in (columns, rows))
    x, y = (a.copy() for a in np.broadcast_arrays(across, down[:, None]))
    count = np.zeros(x.shape, np.int32)
    for _ in range(256):
        inside = x * x + y * y < np.float32(4)
        xi, yi = x[inside], y[inside]
        x[inside], y[inside] = xi * xi - yi * yi + data["cx"], np.float32(2) * xi * yi + data["cy"]
        count[inside] += 1
    return {"image": count}


def _checked(n):
    """Rows and columns that are compared: all of few, some of many."""
    return slice(None, None, max(1, n >> 10))


def compared(outputs):
    image = outputs["image"]
    return {"image": image[_checked(len(image)), _checked(len(image))]}
