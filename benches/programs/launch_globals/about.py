"""No argument: the kernel reads three fields of 16 elements and writes one, all of them globals."""

import numpy as np
from harness.targets import Under

TITLE = "launch, four global fields"
GROUP = "launch"
ORDER = 8
SIZES = {"full": {}, "quick": {}}
OUTPUTS = ("d",)
TARGETS = (Under(0.8e-6, "0.8 µs"),)


def inputs():
    a, b, c = (np.arange(k, k + 16, dtype=np.float32) for k in range(3))
    return {"a": a, "b": b, "c": c, "d": np.zeros(16, np.float32)}


def reference(data):
    return {"d": data["a"] + data["b"] + data["c"]}
