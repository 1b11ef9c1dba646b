"""Copies of arrays: made, put back and compared; and before which steps they are worth their memory."""

from __future__ import annotations

import math

from .._arrays import _made
from .._fields.field import Field
from .._fields.making import allocate_like
from .._fields.sparse_access import copy_active
from .._octants import Ndarray
from .arrays import is_torch

TYPE_CHECKING = False  # as `typing` says it, without its weight
if TYPE_CHECKING:
    from typing import Any

#: How far a state that is computed again may be from the first one, in parts of its size, where the same steps from the same arrays come to another state each time.
#: Sums in another order differ by 1e-7 at first, and a hundred steps that do not forget it may make 1e-3 of it. Chosen, not measured.
_SAME_STATE = 1e-3


def like(array):
    """An array of the same type and shape, without gradients."""
    if isinstance(array, Ndarray):
        return _made(array.element_type, array.shape, array.layout)
    if isinstance(array, Field):
        return allocate_like(array)
    return array.detach().clone() if is_torch(array) else array.copy()


def put(to, what) -> None:
    """Sets all elements to those of a copy, or those of a copy."""
    if is_torch(to):
        to.detach().copy_(what)
    elif isinstance(to, Field) and to._is_sparse:
        copy_active(to, what)
    elif isinstance(to, (Field, Ndarray)):
        to.copy_from(what)
    else:
        to[...] = what


def copied(array):
    """A copy."""
    made: Any = like(array)
    put(made, array)
    return made


def checksum(numbers) -> bytes:
    """A checksum of a numpy array, in which no number is as any other."""
    # Loads a library of ciphers, which most programs do without.
    from hashlib import blake2b

    return blake2b(numbers.tobytes(), digest_size=16).digest()


def are_alike(found, expected) -> bool:
    """Whether two numpy arrays are alike, but for the order of sums."""
    import numpy

    if expected.dtype.kind != "f":
        # Sums of whole numbers are the same in any order.
        return found.tobytes() == expected.tobytes()
    found, expected = found.astype(numpy.float64), expected.astype(numpy.float64)
    same = (found == expected) | (numpy.isnan(found) & numpy.isnan(expected))
    apart = numpy.linalg.norm(found[~same] - expected[~same])
    size = numpy.linalg.norm(expected[~numpy.isnan(expected)])
    # What is zero but for rounding has no size.
    return bool(same.all() or apart <= _SAME_STATE * size + 1e-6 * math.sqrt(expected.size))


def next_copy(steps: int, left: int) -> int:
    """After how many of the steps the next state is kept, so that all are gone back through with as few steps forward as can be.

    With ``s`` states kept, that before the first step among them, ``C(s + t, s)`` steps are gone back through with each run forward ``t`` times at most.
    """
    states, times = max(left, 0) + 1, 1
    while math.comb(states + times, states) < steps:
        times += 1
    return min(max(1, steps - math.comb(states - 1 + times, states - 1)), steps - 1)
