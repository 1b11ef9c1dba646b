"""Singular value decompositions of {n:,} 3 x 3 matrices, f32."""

import numpy as np
from harness.programs import Tolerance
from harness.targets import TimesBetter

TITLE = "3x3 SVD"
GROUP = "throughput"
ORDER = 11
SIZES = {"full": {"n": 200_000}, "quick": {"n": 50_000}, "compile": {"n": 16}, "gpu": {"n": 4 << 20}}
OUTPUTS = ("u", "s", "v")
ELEMENTS = {"a": (3, 3), "u": (3, 3), "s": (3, 3), "v": (3, 3)}
TOLERANCE = Tolerance(atol=2e-4)
TARGETS = (TimesBetter(2, "quadrants"),)
COMPILE = True
COMPILE_TARGETS = (TimesBetter(4, "quadrants"),)


def inputs(n):
    a = np.random.default_rng(33).uniform(-1, 1, (n, 3, 3)).astype(np.float32)
    return {"a": a} | {name: np.zeros_like(a) for name in ("u", "s", "v")}


def reference(data):
    a = data["a"][_checked(len(data["a"]))].astype(np.float64)
    unit = np.broadcast_to(np.eye(3), a.shape)
    return {"product": a, "values": np.linalg.svd(a, compute_uv=False), "u": unit, "v": unit, "off": np.zeros_like(a)}


def _checked(n):
    """Matrices that are compared: all of few, some of many."""
    return slice(None, None, max(1, n >> 18))


def compared(outputs):
    """Signs of singular vectors are free, so: what the factors multiply to, and that they are what they are called."""
    u, s, v = (outputs[name][_checked(len(outputs[name]))].astype(np.float64) for name in ("u", "s", "v"))
    values = np.sort(np.abs(np.einsum("nii->ni", s)))[:, ::-1]
    return {
        "product": u @ s @ v.transpose(0, 2, 1),
        "values": values,
        "u": u.transpose(0, 2, 1) @ u,
        "v": v.transpose(0, 2, 1) @ v,
        "off": s * (1 - np.eye(3)),
    }
