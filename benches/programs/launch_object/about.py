"""A method of an object with some thirty members: numbers, flags, ndarrays, fields, and objects with such of their own."""

import numpy as np
from harness.targets import TimesBetter

TITLE = "launch, method of an object of 30 members"
GROUP = "launch"
ORDER = 9
SIZES = {"full": {}, "quick": {}}
OUTPUTS = ("d",)
WITHOUT = ("taichi",)  # it has no ndarrays as members
TARGETS = (TimesBetter(1, "quadrants"),)


def inputs():
    a, b = (np.arange(k, k + 16, dtype=np.float32) for k in range(2))
    return {"a": a, "b": b, "d": np.zeros(16, np.float32)}


def reference(data):
    # `a` and `b` are there three times: in the object, and in each of its parts, as an ndarray and as a field.
    return {"d": np.float32(3) * (data["a"] + data["b"]) + np.float32(2 * 3 + 1)}
