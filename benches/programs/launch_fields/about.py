"""Four fields of 16 elements as template arguments, and two scalars."""

import numpy as np
from harness.targets import Under

TITLE = "launch, four fields and two scalars"
GROUP = "launch"
ORDER = 7
SIZES = {"full": {}, "quick": {}}
OUTPUTS = ("d",)
TARGETS = (Under(0.8e-6, "0.8 µs"),)


def inputs():
    a, b, c = (np.arange(k, k + 16, dtype=np.float32) for k in range(3))
    return {"a": a, "b": b, "c": c, "d": np.zeros(16, np.float32), "scale": np.float32(2), "shift": np.float32(1)}


def reference(data):
    return {"d": data["scale"] * data["a"] + data["b"] + data["c"] + data["shift"]}
