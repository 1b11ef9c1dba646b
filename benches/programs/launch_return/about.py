"""One integer in, one integer returned."""

import numpy as np

TITLE = "launch, scalar return"
GROUP = "launch"
ORDER = 5
SIZES = {"full": {}, "quick": {}, "gpu": {}}
OUTPUTS = ()
RETURNS = "int32"


def inputs():
    return {"k": np.int32(41)}


def reference(data):
    return {"returned": np.int32(42)}
