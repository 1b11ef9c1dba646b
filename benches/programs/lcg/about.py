"""{n:,} integer generators of 1000 steps each: x = (1664525 x + 1013904223) mod 2147483647 in i32."""

import numpy as np
from harness.targets import SpeedOf

TITLE = "LCG"
GROUP = "throughput"
ORDER = 6
SIZES = {"full": {"n": 16_000}, "quick": {"n": 16_000}, "gpu": {"n": 1 << 24}}
OUTPUTS = ("x",)
FAST_MATH = True
TARGETS = (SpeedOf(0.9, "c"),)


def inputs(n):
    return {"x": np.arange(n, dtype=np.int32)}


def reference(data):
    x = data["x"][_checked(data["x"].size)].copy()
    for _ in range(1000):
        # Products wrap in 32 bits; the remainder has the sign of the divisor, as Python's.
        x = (x * np.int32(1664525) + np.int32(1013904223)) % np.int32(2147483647)
    return {"x": x}


def _checked(n):
    """Generators that are compared: all of few, some of many."""
    return slice(None, None, max(1, n >> 16))


def compared(outputs):
    return {"x": outputs["x"][_checked(outputs["x"].size)]}
