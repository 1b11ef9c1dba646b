"""One array of {n:,} f32 read, three written: the bytes that singular value decompositions of 3 x 3 matrices move, without their arithmetic."""

import numpy as np
from harness.programs import Tolerance

TITLE = "one read, three written"
GROUP = "throughput"
ORDER = 12
SIZES = {"full": {"n": 9 * 200_000}, "quick": {"n": 9 * 50_000}, "gpu": {"n": 9 * (4 << 20)}}
OUTPUTS = ("u", "s", "v")
TOLERANCE = Tolerance(rtol=0)
TARGETS = ()


def inputs(n):
    a = np.random.default_rng(33).uniform(-1, 1, n).astype(np.float32)
    return {"a": a} | {name: np.zeros_like(a) for name in ("u", "s", "v")}


def reference(data):
    return dict.fromkeys(OUTPUTS, data["a"])


def bytes_moved(n):
    return 16 * n
