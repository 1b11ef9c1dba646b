"""Values for lanes, and what numpy makes of them tile by tile."""

from __future__ import annotations

import numpy as np

import octants as oc

#: The types that lanes reduce and scan.
TYPES = ("i32", "u32", "f32", "i64", "u64", "f64")
#: Lanes of a subgroup.
LANES = 32
#: Threads of the loops here: several blocks of several subgroups.
THREADS = 192


def types(name: str):
    """Octants' and numpy's type of this name."""
    return getattr(oc, name), np.dtype({"i": "int", "u": "uint", "f": "float"}[name[0]] + name[1:]).type


def values(name: str, count: int = THREADS, seed: int = 0) -> np.ndarray:
    """Numbers of a type, small enough for sums; with negative ones, where there are such."""
    random = np.random.default_rng(seed)
    _, numpy_type = types(name)
    if name[0] == "f":
        return random.uniform(-4, 4, count).astype(numpy_type)
    return random.integers(0 if name[0] == "u" else -50, 50, count).astype(numpy_type)


def bits(name: str, count: int = THREADS, seed: int = 0) -> np.ndarray:
    """Any numbers of an integer type."""
    _, numpy_type = types(name)
    limits = np.iinfo(numpy_type)
    return np.random.default_rng(seed).integers(limits.min, limits.max, count, dtype=numpy_type)


COMBINE = {
    "add": np.add,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def identity(op: str, numpy_type):
    """What an exclusive scan has on the first lane."""
    if op in ("min", "max"):
        if np.issubdtype(numpy_type, np.floating):
            return numpy_type(np.inf if op == "min" else -np.inf)
        limits = np.iinfo(numpy_type)
        return numpy_type(limits.max if op == "min" else limits.min)
    if op == "and":
        return ~numpy_type(0)
    return numpy_type(op == "mul")


def tiles(x: np.ndarray, size: int) -> np.ndarray:
    return x.reshape(-1, size)


def reduced(op: str, x: np.ndarray, size: int) -> np.ndarray:
    """What each tile comes to."""
    return COMBINE[op].reduce(tiles(x, size), axis=1, dtype=x.dtype)


def inclusive(op: str, x: np.ndarray, size: int) -> np.ndarray:
    return COMBINE[op].accumulate(tiles(x, size), axis=1, dtype=x.dtype).ravel()


def exclusive(op: str, x: np.ndarray, size: int) -> np.ndarray:
    first = np.full((len(x) // size, 1), identity(op, x.dtype.type), x.dtype)
    return np.hstack([first, tiles(inclusive(op, x, size), size)[:, :-1]]).ravel()


def assert_close(ours: np.ndarray, theirs: np.ndarray, of: str = "") -> None:
    """Equal, but for the order in which reals are added and multiplied."""
    if np.issubdtype(theirs.dtype, np.floating):
        np.testing.assert_allclose(
            ours, theirs, rtol=1e-13 if theirs.dtype == np.float64 else 2e-5, atol=1e-5, err_msg=of
        )
    else:
        np.testing.assert_array_equal(ours, theirs, err_msg=of)
