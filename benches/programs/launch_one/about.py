"""One ndarray of 16 elements, one added to each."""

import numpy as np

TITLE = "launch, one ndarray"
GROUP = "launch"
ORDER = 2
SIZES = {"full": {}, "quick": {}, "gpu": {}}
OUTPUTS = ("x",)


def inputs():
    return {"x": np.arange(16, dtype=np.float32)}


def reference(data):
    return {"x": data["x"] + np.float32(1)}
