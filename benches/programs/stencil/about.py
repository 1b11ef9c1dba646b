"""Five-point stencil over {n:,} x {n:,} f32, from one array into another."""

import numpy as np
from harness.programs import Tolerance
from harness.targets import SpeedOf, TimesBetter

TITLE = "stencil"
GROUP = "throughput"
ORDER = 5
SIZES = {"full": {"n": 8192}, "quick": {"n": 4096}, "compile": {"n": 32}, "gpu": {"n": 16384}}
OUTPUTS = ("b",)
TOLERANCE = Tolerance(rtol=1e-5, atol=1e-5)
TARGETS = (SpeedOf(0.9, "c"),)
COMPILE = True
COMPILE_TARGETS = (TimesBetter(6, "quadrants"),)


def inputs(n):
    return {"a": np.random.default_rng(2).random((n, n), dtype=np.float32), "b": np.zeros((n, n), np.float32)}


def reference(data):
    a, b = data["a"], data["b"].copy()
    around = a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]
    b[1:-1, 1:-1] = a[1:-1, 1:-1] + np.float32(0.1) * (around - np.float32(4) * a[1:-1, 1:-1])
    return {"b": b}


def bytes_moved(n):
    return 8 * n * n
