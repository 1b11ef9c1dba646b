"""Gravity of {n:,} bodies on each other, all pairs, f32, arrays x, y, z, m."""

import numpy as np
from harness.programs import Tolerance
from harness.targets import SpeedOf

TITLE = "n-body"
GROUP = "throughput"
ORDER = 7
SIZES = {"full": {"n": 8192}, "quick": {"n": 4096}, "gpu": {"n": 65_536}}
OUTPUTS = ("ax", "ay", "az")
TOLERANCE = Tolerance(rtol=1e-3, atol=1e-3)
FAST_MATH = True
TARGETS = (SpeedOf(0.9, "c"),)


def inputs(n):
    rng = np.random.default_rng(3)
    bodies = {name: rng.random(n, dtype=np.float32) for name in ("x", "y", "z")}
    mass = {"m": (rng.random(n, dtype=np.float32) + np.float32(0.5)) / np.float32(n)}
    return bodies | mass | {name: np.zeros(n, np.float32) for name in ("ax", "ay", "az")}


def reference(data):
    x, y, z, m = (data[name].astype(np.float64) for name in ("x", "y", "z", "m"))
    checked = np.arange(x.size)[_checked(x.size)]
    forces = np.empty((3, checked.size))
    for lo in range(0, checked.size, 256):
        rows = checked[lo : lo + 256]
        d = [c[None, :] - c[rows, None] for c in (x, y, z)]
        f = m * (d[0] ** 2 + d[1] ** 2 + d[2] ** 2 + 1e-4) ** -1.5
        for axis in range(3):
            forces[axis, lo : lo + 256] = (d[axis] * f).sum(axis=1)
    return dict(zip(("ax", "ay", "az"), forces))


def _checked(n):
    """Bodies that are compared: all of few, some of many."""
    return slice(None, None, max(1, n * n >> 26))


def compared(outputs):
    return {name: a[_checked(a.size)] for name, a in outputs.items()}
