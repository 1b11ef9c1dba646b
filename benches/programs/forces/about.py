"""Gravity of {n:,} bodies on each other, all pairs but each with itself, summed into a field of vectors while the inner loop runs, f32."""

import numpy as np
from harness.programs import Tolerance
from harness.targets import TimesBetter

TITLE = "n-body into memory"
GROUP = "throughput"
ORDER = 7.5
SIZES = {"full": {"n": 8192}, "quick": {"n": 4096}}
OUTPUTS = ("force",)
TOLERANCE = Tolerance(rtol=1e-3, atol=1e-3)
FAST_MATH = True
TARGETS = (TimesBetter(1.5, "quadrants"),)


def inputs(n):
    rng = np.random.default_rng(3)
    return {"place": rng.random((n, 2), dtype=np.float32), "force": np.zeros((n, 2), np.float32)}


def reference(data):
    place = data["place"].astype(np.float64)
    force = np.empty_like(place)
    for lo in range(0, len(place), 256):
        d = place[None, :] - place[lo : lo + 256, None]
        force[lo : lo + 256] = (d * ((d**2).sum(axis=2, keepdims=True) + 1e-3) ** -1.5).sum(axis=1) / len(place)
    return {"force": force}
