# type: ignore  (in the kernel language annotations are values, and what is static decides the types)
"""Scans, in the kernel language: what comes before each element of an array, added up, or the least or greatest of it.

Blocks are folded level by level, as in ``_reduce``; from the last level down each block then begins with what came before it.
"""

from __future__ import annotations

from .._language import cast, static
from .._session import func
from ..types import Template, i32, u32
from ._reduce import combined, fold_blocks, keep, kept, level_begin, level_size
from ._scratch import BLOCK, blocks_of, identity, levels_within, nth, require_apart, require_levels


@func
def _scan_entries(scratch: Template, begin, end, before, dtype: Template, op: Template):
    """Turns entries of the scratch into what comes before each of them."""
    running = before
    for at in range(begin, end):
        value = kept(scratch, at, dtype)
        keep(scratch, at, running, dtype)
        running = combined(running, value, op)


@func(requires_top_level=True)
def _scan_levels(scratch: Template, n, dtype: Template, op: Template, levels: Template):
    """Turns what blocks come to into what comes before each block, on all levels."""
    for down in static(range(levels - 1)):
        level = static(levels - 1 - down)
        begin, size = level_begin(n, level), level_size(n, level)
        if static(down == 0):
            for _ in range(1):
                _scan_entries(scratch, begin, begin + size, cast(static(identity(op, dtype)), dtype), dtype, op)
        else:
            for group in range(blocks_of(size) if size > static(BLOCK) else 0):
                first = begin + group * static(BLOCK)
                before = kept(scratch, begin + size + group, dtype)
                _scan_entries(scratch, first, min(first + static(BLOCK), begin + size), before, dtype, op)


@func(requires_top_level=True)
def scan(
    arr: Template,
    out: Template,
    scratch: Template,
    count,
    dtype: Template,
    levels: Template,
    op: Template,
    inclusive: Template,
):
    """Sets each element of ``out`` to what comes before it in ``arr``, and ``inclusive`` of it. Inclusive, ``out`` may be ``arr``."""
    n = levels_within(scratch, count, static(f"exclusive_scan_{op}"), levels)
    fold_blocks(arr, scratch, n, dtype, op, levels)
    _scan_levels(scratch, n, dtype, op, levels)
    for block in range(blocks_of(n)):
        running = cast(static(identity(op, dtype)), dtype)
        if static(levels > 1):
            running = kept(scratch, block, dtype)
        for at in range(block * static(BLOCK), min(n, (block + 1) * static(BLOCK))):
            following = combined(running, cast(arr[nth(arr, at)], dtype), op)
            out[nth(out, at)] = following if static(inclusive) else running
            running = following


@func(requires_top_level=True)
def sums_before(scratch: Template, count, levels: Template):
    """Turns each of the first ``count`` entries into the sum of those before it. The sums of blocks follow the entries, where there are several."""
    begin, size = 0, count
    for _ in static(range(levels)):
        groups = blocks_of(size)
        for group in range(groups):
            total = u32(0)
            for at in range(begin + group * static(BLOCK), begin + min(size, (group + 1) * static(BLOCK))):
                slot = nth(scratch, at)
                value = scratch[slot]
                scratch[slot] = total
                total += value
            if groups > 1:
                scratch[nth(scratch, begin + size + group)] = total
        begin += size
        size = groups if groups > 1 else 0
    for down in static(range(levels - 1)):
        begin, size = 0, count
        for _ in static(range(levels - 2 - down)):
            begin += size
            size = blocks_of(size) if size > static(BLOCK) else 0
        for at in range(size if size > static(BLOCK) else 0):
            before = scratch[nth(scratch, begin + size + at // static(BLOCK))]
            scratch[nth(scratch, begin + at)] += before


@func(requires_top_level=True)
def exclusive_scan_add(
    arr: Template, out: Template, scratch: Template, n: i32, dtype: Template, log256_max_n: Template
):
    """Sets each of the first ``n`` elements of ``out`` to the sum of those of ``arr`` before it, which is the same in every run.

    ``out`` is another array than ``arr``. ``scratch`` has ``exclusive_scan_scratch_slots`` entries, of u32 where elements have four bytes, else of
    u64. ``log256_max_n`` says how many elements there are at most: 256 to that power.
    """
    static(require_apart(arr is out))
    scan(arr, out, scratch, n, dtype, static(require_levels(log256_max_n)), "add", False)


@func(requires_top_level=True)
def exclusive_scan_min(
    arr: Template, out: Template, scratch: Template, n: i32, dtype: Template, log256_max_n: Template
):
    """Sets each of the first ``n`` elements of ``out`` to the least of those of ``arr`` before it, as ``exclusive_scan_add``."""
    static(require_apart(arr is out))
    scan(arr, out, scratch, n, dtype, static(require_levels(log256_max_n)), "min", False)


@func(requires_top_level=True)
def exclusive_scan_max(
    arr: Template, out: Template, scratch: Template, n: i32, dtype: Template, log256_max_n: Template
):
    """Sets each of the first ``n`` elements of ``out`` to the greatest of those of ``arr`` before it, as ``exclusive_scan_add``."""
    static(require_apart(arr is out))
    scan(arr, out, scratch, n, dtype, static(require_levels(log256_max_n)), "max", False)
