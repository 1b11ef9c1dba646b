"""The sum of {n:,} f32 added atomically into an array of one element."""

import numpy as np
from harness.targets import SpeedOf

TITLE = "sum into an array"
GROUP = "throughput"
ORDER = 3
SIZES = {"full": {"n": 64 << 20}, "quick": {"n": 16 << 20}, "gpu": {"n": 1 << 28}}
OUTPUTS = ("total",)
TARGETS = (SpeedOf(0.9, "c"),)


def inputs(n):
    # Ones and zeros with a sum below 2**24: exact in f32 in whatever order they are added.
    x = (np.random.default_rng(1).random(n, dtype=np.float32) < min(0.125, 2**23 / n)).astype(np.float32)
    return {"x": x, "total": np.zeros(1, np.float32)}


def reference(data):
    return {"total": np.array([data["x"].sum(dtype=np.float64)])}


def bytes_moved(n):
    return 4 * n
