"""The sum of {n:,} f32 accumulated in a scalar of the kernel and returned."""

import numpy as np
from harness.targets import SpeedOf

TITLE = "sum returned"
GROUP = "throughput"
ORDER = 4
SIZES = {"full": {"n": 64 << 20}, "quick": {"n": 16 << 20}, "gpu": {"n": 1 << 28}}
OUTPUTS = ()
RETURNS = "float32"
TARGETS = (SpeedOf(0.9, "c"),)


def inputs(n):
    # Ones and zeros with a sum below 2**24: exact in f32 in whatever order they are added.
    x = (np.random.default_rng(1).random(n, dtype=np.float32) < min(0.125, 2**23 / n)).astype(np.float32)
    return {"x": x}


def reference(data):
    return {"returned": data["x"].sum(dtype=np.float64)}


def bytes_moved(n):
    return 4 * n
