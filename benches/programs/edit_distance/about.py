"""Edit distance of two texts of {n:,} letters, by a table that is filled in order."""

import numpy as np
from harness.targets import TimesBetter

TITLE = "edit distance"
GROUP = "throughput"
ORDER = 13
SIZES = {"full": {"n": 2000}, "quick": {"n": 500}}
OUTPUTS = ("table",)
TARGETS = (TimesBetter(1, "quadrants"),)


def inputs(n):
    random = np.random.default_rng(0)
    a, b = (random.integers(0, 4, n).astype(np.int32) for _ in range(2))
    return {"a": a, "b": b, "table": np.zeros((n + 1, n + 1), dtype=np.int32)}


def reference(data):
    a, b = data["a"], data["b"]
    rows = [np.arange(len(b) + 1, dtype=np.int32)]
    for i, letter in enumerate(a, 1):
        above = rows[-1]
        # The step from the left is a running minimum.
        best = np.minimum(above[1:] + 1, above[:-1] + (b != letter))
        shifted = np.concatenate([[i], best]) - np.arange(len(b) + 1)
        rows.append((np.minimum.accumulate(shifted) + np.arange(len(b) + 1)).astype(np.int32))
    return {"table": np.stack(rows)}
