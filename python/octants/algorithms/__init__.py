"""Algorithms over whole arrays, as funcs that a kernel calls at its top level. Written in the kernel language.

Arrays are fields, arrays and tensors of one axis, cut into blocks that do not depend on the number of threads: results are the same in every run. Elements
are numbered from 0, wherever an array's indices begin: those of a field may begin at an offset. Each file begins with how it does it. ``parallel_sort`` and ``PrefixSumExecutor`` are for the host, and deprecated.
"""

from __future__ import annotations

from ._algorithms import PrefixSumExecutor, parallel_sort
from ._radix_sort import sort
from ._reduce import reduce_add, reduce_max, reduce_min
from ._reduce_by_key import reduce_by_key_add
from ._scan import exclusive_scan_add, exclusive_scan_max, exclusive_scan_min
from ._scratch import (
    exclusive_scan_scratch_slots,
    reduce_by_key_scratch_slots,
    reduce_scratch_slots,
    select_scratch_slots,
    sort_scratch_slots,
)
from ._select import select

__all__ = [
    "PrefixSumExecutor", "exclusive_scan_add", "exclusive_scan_max", "exclusive_scan_min", "exclusive_scan_scratch_slots", "parallel_sort",
    "reduce_add", "reduce_by_key_add", "reduce_by_key_scratch_slots", "reduce_max", "reduce_min", "reduce_scratch_slots", "select",
    "select_scratch_slots", "sort", "sort_scratch_slots",
]  # fmt: skip
