"""Four ndarrays of 16 elements and two scalars: d = s * a + t * b + c."""

import numpy as np
from harness.targets import TimesBetter

TITLE = "launch, four ndarrays and two scalars"
GROUP = "launch"
ORDER = 3
SIZES = {"full": {}, "quick": {}, "gpu": {}}
OUTPUTS = ("d",)
TARGETS = (TimesBetter(15, "quadrants"),)


def inputs():
    a, b, c = (np.arange(k, k + 16, dtype=np.float32) for k in range(3))
    return {"a": a, "b": b, "c": c, "d": np.zeros(16, np.float32), "s": np.float32(2), "t": np.float32(3)}


def reference(data):
    return {"d": data["s"] * data["a"] + data["t"] * data["b"] + data["c"]}
