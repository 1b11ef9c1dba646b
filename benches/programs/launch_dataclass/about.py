"""One dataclass of 20 members, of which the kernel uses 4 ndarrays of 16 elements and a scalar."""

import numpy as np
from harness.targets import Under

TITLE = "launch, dataclass of 20 members, 5 used"
GROUP = "launch"
ORDER = 6
SIZES = {"full": {}, "quick": {}}
OUTPUTS = ("d",)
WITHOUT = ("taichi",)  # it has no dataclass parameters
TARGETS = (Under(2e-6, "2 µs"),)


def inputs():
    a, b, c = (np.arange(k, k + 16, dtype=np.float32) for k in range(3))
    return {"a": a, "b": b, "c": c, "d": np.zeros(16, np.float32), "scale": np.float32(2)}


def reference(data):
    return {"d": data["scale"] * data["a"] + data["b"] + data["c"]}
