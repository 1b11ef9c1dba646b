"""One value stored into {n:,} f32 (4 bytes each): write bandwidth."""

import numpy as np
from harness.targets import SpeedOf

TITLE = "fill"
GROUP = "throughput"
ORDER = 1
SIZES = {"full": {"n": 64 << 20}, "quick": {"n": 16 << 20}, "gpu": {"n": 1 << 28}}
OUTPUTS = ("x",)
TARGETS = (SpeedOf(0.9, "c"),)


def inputs(n):
    return {"x": np.zeros(n, np.float32), "value": np.float32(1.5)}


def reference(data):
    return {"x": np.full_like(data["x"], data["value"])}


def bytes_moved(n):
    return 4 * n
