"""y = a * x + y over two arrays of {n:,} f32 (4 bytes each): memory bandwidth."""

import numpy as np
from harness.programs import Tolerance
from harness.targets import SpeedOf, TimesBetter

TITLE = "saxpy"
GROUP = "throughput"
ORDER = 2
SIZES = {"full": {"n": 32 << 20}, "quick": {"n": 16 << 20}, "compile": {"n": 1024}, "gpu": {"n": 1 << 28}}
OUTPUTS = ("y",)
TOLERANCE = Tolerance(rtol=1e-6)
TARGETS = (SpeedOf(0.9, "c"),)
COMPILE = True
COMPILE_TARGETS = (TimesBetter(6, "quadrants"),)


def inputs(n):
    x = np.arange(n, dtype=np.float32) / np.float32(n)
    return {"a": np.float32(0.5), "x": x, "y": np.ones(n, np.float32)}


def reference(data):
    return {"y": data["a"] * data["x"] + data["y"]}


def bytes_moved(n):
    return 12 * n
