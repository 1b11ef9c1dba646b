"""A field of {n:,} x {n:,} f32 filled from a numpy array."""

import numpy as np
from harness.targets import Rate

TITLE = "field from numpy"
GROUP = "throughput"
ORDER = 13
SIZES = {"full": {"n": 4096}, "quick": {"n": 4096}}
OUTPUTS = ("a",)
TARGETS = (Rate(4 * 4096**2, 4e9),)


def inputs(n):
    return {"a": np.random.default_rng(4).random((n, n), dtype=np.float32)}


def reference(data):
    return {"a": data["a"]}


def bytes_moved(n):
    return 4 * n * n
