# type: ignore  (in the kernel language annotations are values, and what is static decides the types)
"""Sums, minima and maxima of arrays, in the kernel language.

Each iteration goes through a block of elements and leaves its result in the scratch, as bits; the results of blocks are elements of the next level. The last
level is one iteration. Blocks are the same however many threads there are, and so are sums of reals.
"""

from __future__ import annotations

from .._language import bit_cast, cast, static
from .._session import func
from ..types import Template, i32
from ._scratch import BLOCK, UNSIGNED, blocks_of, identity, levels_within, nth, require_levels


@func
def combined(a, b, op: Template):
    """``a`` and ``b``, added, or the lesser or the greater of them."""
    if static(op == "add"):
        return a + b
    if static(op == "min"):
        return min(a, b)
    return max(a, b)


@func
def kept(scratch: Template, at, dtype: Template):
    """The number whose bits an entry of the scratch has."""
    return bit_cast(cast(scratch[nth(scratch, at)], static(UNSIGNED[dtype])), dtype)


@func
def keep(scratch: Template, at, value, dtype: Template):
    scratch[nth(scratch, at)] = bit_cast(value, static(UNSIGNED[dtype]))


@func
def block_of_array(arr: Template, block, n, dtype: Template, op: Template):
    """What a block of an array comes to."""
    total = cast(static(identity(op, dtype)), dtype)
    for at in range(block * static(BLOCK), min(n, (block + 1) * static(BLOCK))):
        total = combined(total, cast(arr[nth(arr, at)], dtype), op)
    return total


@func(requires_top_level=True)
def fold_blocks(arr: Template, scratch: Template, n, dtype: Template, op: Template, levels: Template):
    """Leaves what blocks of ``arr`` come to, and blocks of these, in the scratch, one level after the other: all but the last.

    A level of one block has none above it: the same entries count as the next level.
    """
    begin, size = 0, blocks_of(n)
    if static(levels > 1):
        for block in range(size):
            keep(scratch, block, block_of_array(arr, block, n, dtype, op), dtype)
    for _ in static(range(levels - 2)):
        groups = blocks_of(size) if size > static(BLOCK) else 0
        for group in range(groups):
            total = cast(static(identity(op, dtype)), dtype)
            for at in range(begin + group * static(BLOCK), begin + min(size, (group + 1) * static(BLOCK))):
                total = combined(total, kept(scratch, at, dtype), op)
            keep(scratch, begin + size + group, total, dtype)
        if groups > 0:
            begin += size
            size = groups


@func
def level_begin(n, level: Template):
    """Where a level of blocks begins in the scratch; level 1 has the blocks of the array."""
    begin, size = 0, blocks_of(n)
    for _ in static(range(level - 1)):
        if size > static(BLOCK):
            begin += size
            size = blocks_of(size)
    return begin


@func
def level_size(n, level: Template):
    """How many elements a level has; level 0 is the array."""
    size = cast(n, i32)
    if static(level > 0):
        size = blocks_of(size)
    for _ in static(range(level - 1)):
        if size > static(BLOCK):
            size = blocks_of(size)
    return size


@func(requires_top_level=True)
def _reduce(
    arr: Template, out: Template, scratch: Template, count, dtype: Template, log256_max_n: Template, op: Template
):
    levels = static(require_levels(log256_max_n))
    n = levels_within(scratch, count, static(f"reduce_{op}"), levels)
    fold_blocks(arr, scratch, n, dtype, op, levels)
    for _ in range(1):
        total = cast(static(identity(op, dtype)), dtype)
        begin = 0
        if static(levels > 1):
            begin = level_begin(n, static(levels - 1))
        for at in range(begin, begin + level_size(n, static(levels - 1))):
            if static(levels > 1):
                total = combined(total, kept(scratch, at, dtype), op)
            else:
                total = combined(total, cast(arr[nth(arr, at)], dtype), op)
        out[nth(out, 0)] = total


@func(requires_top_level=True)
def reduce_add(arr: Template, out: Template, scratch: Template, n: i32, dtype: Template, log256_max_n: Template):
    """Sets the first element of ``out`` to the sum of the first ``n`` elements, which is the same in every run.

    ``scratch`` has ``reduce_scratch_slots`` entries, of u32 where elements have four bytes, else of u64. ``log256_max_n`` says how many
    elements there are at most: 256 to that power.
    """
    _reduce(arr, out, scratch, n, dtype, log256_max_n, "add")


@func(requires_top_level=True)
def reduce_min(arr: Template, out: Template, scratch: Template, n: i32, dtype: Template, log256_max_n: Template):
    """Sets the first element of ``out`` to the least of the first ``n`` elements, as ``reduce_add``; of none, to the greatest number of the type."""
    _reduce(arr, out, scratch, n, dtype, log256_max_n, "min")


@func(requires_top_level=True)
def reduce_max(arr: Template, out: Template, scratch: Template, n: i32, dtype: Template, log256_max_n: Template):
    """Sets the first element of ``out`` to the greatest of the first ``n`` elements, as ``reduce_add``; of none, to the least number of the type."""
    _reduce(arr, out, scratch, n, dtype, log256_max_n, "max")
