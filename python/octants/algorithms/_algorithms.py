# type: ignore  (in the kernel language annotations are values, and what is static decides the types)
"""Algorithms that the host calls, which programs for Quadrants and Taichi have. New programs call ``sort`` and ``exclusive_scan_add`` in kernels."""

from __future__ import annotations

import warnings

from .._arrays import ndarray
from .._language import static
from .._session import kernel
from ..types import Template, Tensor, i32, u32
from ._scan import scan
from ._scratch import exclusive_scan_scratch_slots, nth

__all__ = ["PrefixSumExecutor", "parallel_sort"]

#: Levels of blocks that any index of 32 bits is within.
_LEVELS = 4


@kernel
def _compare_exchanges(
    keys: Tensor, values: Tensor, has_values: Template, n: i32, size: i32, distance: i32, offset: i32
):
    """Puts pairs at ``distance`` in order: those whose first index has ``offset`` as its bit ``size``."""
    for at in range(n - distance):
        if (at & size) == offset:
            low, high = nth(keys, at), nth(keys, at + distance)
            key, other = keys[low], keys[high]
            if key > other:
                keys[low], keys[high] = other, key
                if static(has_values):
                    low, high = nth(values, at), nth(values, at + distance)
                    values[low], values[high] = values[high], values[low]


def parallel_sort(keys, values=None) -> None:
    """Sorts a field of keys, and the values along with them, by Batcher's network. Deprecated: use ``sort`` in a kernel.

    Keys that are equal may change places.
    """
    warnings.warn(
        "parallel_sort is deprecated: call octants.algorithms.sort in a kernel", DeprecationWarning, stacklevel=2
    )
    n = keys.shape[0]
    others = keys if values is None else values
    if others.shape[0] < n:
        raise ValueError(f"parallel_sort needs a value for each of {n} keys; there are {others.shape[0]}")
    size = 1 << max(0, (n - 1).bit_length() - 1)
    top = size
    while size > 0:
        step, offset, distance = top, 0, size
        while True:
            if distance < n:
                _compare_exchanges(keys, others, values is not None, n, size, distance, offset)
            if step == size:
                break
            distance, step, offset = step - size, step >> 1, size
        size >>= 1


@kernel
def _inclusive_sums(arr: Tensor, scratch: Tensor, length: i32):
    scan(arr, arr, scratch, length, i32, _LEVELS, "add", True)


class PrefixSumExecutor:
    """Replaces the elements of a field of i32 by the sums up to them. Deprecated: use ``exclusive_scan_add`` in a kernel."""

    def __init__(self, length: int):
        warnings.warn(
            "PrefixSumExecutor is deprecated: call octants.algorithms.exclusive_scan_add in a kernel",
            DeprecationWarning,
            stacklevel=2,
        )
        self._length = length
        self._scratch = ndarray(u32, exclusive_scan_scratch_slots(length, _LEVELS))

    def run(self, input_arr) -> None:
        """Replaces each of the first elements by the sum of those up to it."""
        if input_arr.dtype != i32:
            raise RuntimeError(f"PrefixSumExecutor adds up fields of i32, not of {input_arr.dtype}")
        if input_arr.shape[0] < self._length:
            raise ValueError(
                f"this PrefixSumExecutor adds up {self._length} elements, and the field has {input_arr.shape[0]}"
            )
        _inclusive_sums(input_arr, self._scratch, self._length)
