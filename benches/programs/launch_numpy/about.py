"""One numpy array of 16 elements as the argument, one added to each."""

import numpy as np

TITLE = "launch, numpy array"
GROUP = "launch"
ORDER = 4
SIZES = {"full": {}, "quick": {}}
OUTPUTS = ("x",)
NUMPY_ARGUMENTS = True


def inputs():
    return {"x": np.arange(16, dtype=np.float32)}


def reference(data):
    return {"x": data["x"] + np.float32(1)}
