"""{n:,} keys counted in {bins:,} bins: atomic additions that collide."""

import numpy as np

TITLE = "histogram"
GROUP = "throughput"
ORDER = 9
SIZES = {
    "full": {"n": 16 << 20, "bins": 1024},
    "quick": {"n": 4 << 20, "bins": 1024},
    "gpu": {"n": 1 << 26, "bins": 1024},
}
OUTPUTS = ("counts",)


def inputs(n, bins):
    keys = np.random.default_rng(26).integers(0, bins, n, dtype=np.int32)
    return {"keys": keys, "counts": np.zeros(bins, np.int32)}


def reference(data):
    return {"counts": np.bincount(data["keys"], minlength=data["counts"].size)}


def bytes_moved(n, bins):
    return 4 * n
