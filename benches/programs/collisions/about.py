"""Forces between {n:,} discs that touch: an array of structs, and lists of the discs in each cell of a {cells} x {cells} grid."""

import numpy as np
from harness.programs import Tolerance
from harness.targets import TimesBetter

TITLE = "collisions, structs"
GROUP = "throughput"
ORDER = 12
SIZES = {"full": {"n": 8192, "cells": 48}, "quick": {"n": 4096, "cells": 32}}
OUTPUTS = ("force",)
TOLERANCE = Tolerance(rtol=1e-3, atol=1e-2)
TARGETS = (TimesBetter(1, "quadrants"),)

#: Discs that a cell may hold.
_CAPACITY = 32


def inputs(n, cells):
    random = np.random.default_rng(0)
    x = random.random((n, 2)).astype(np.float32)
    v = (random.random((n, 2)) - 0.5).astype(np.float32)
    radius = ((0.1 + 0.15 * random.random(n)) / cells).astype(np.float32)
    cell = np.minimum((x * np.float32(cells)).astype(np.int32), cells - 1)
    number = cell[:, 0] * cells + cell[:, 1]
    order = np.argsort(number, kind="stable")
    counts = np.bincount(number, minlength=cells * cells).astype(np.int32)
    assert counts.max() <= _CAPACITY, "a cell overflows"
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])
    members = np.zeros((cells * cells, _CAPACITY), dtype=np.int32)
    members[number[order], np.arange(n) - first[number[order]]] = order
    return {
        "x": x,
        "v": v,
        "radius": radius,
        "counts": counts.reshape(cells, cells),
        "members": members.reshape(cells, cells, _CAPACITY),
        "force": np.zeros((n, 2), dtype=np.float32),
    }


def reference(data):
    x, v, radius = (data[name].astype(np.float64) for name in ("x", "v", "radius"))
    force = np.zeros_like(x)
    for part in np.array_split(np.arange(len(x)), max(1, len(x) // 64)):
        apart = x[part, None] - x[None]
        distance = np.sqrt((apart**2).sum(-1) + 1e-18)
        overlap = radius[part, None] + radius[None] - distance
        touching = (overlap > 0) & (part[:, None] != np.arange(len(x))[None])
        normal = apart / distance[..., None]
        speed = ((v[part, None] - v[None]) * normal).sum(-1)
        push = np.where(touching, 1000.0 * overlap - 0.5 * speed, 0.0)
        force[part] = (normal * push[..., None]).sum(1)
    return {"force": force.astype(np.float32)}
