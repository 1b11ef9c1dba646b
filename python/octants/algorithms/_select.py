# type: ignore  (in the kernel language annotations are values, and what is static decides the types)
"""Selecting elements by flags, in the kernel language: blocks count their flags, the counts are added up, and blocks move their elements."""

from __future__ import annotations

from .._language import cast, static
from .._session import func
from ..types import Template, i32, u32
from ._scan import sums_before
from ._scratch import BLOCK, blocks_of, blocks_within, counts_slots, nth, require_levels


@func(requires_top_level=True)
def select(
    arr: Template, flags: Template, out: Template, num_out: Template, scratch: Template, n: i32, log256_max_n: Template
):
    """Copies those of the first ``n`` elements to ``out`` whose flag is 1, in order, and sets the first element of ``num_out`` to how many they are.

    Flags are 0 or 1; elements may be vectors, matrices and structs. ``scratch`` is an array of u32 of ``select_scratch_slots`` entries.
    ``log256_max_n`` says how many elements there are at most: 256 to that power.
    """
    levels = static(require_levels(log256_max_n))
    n = blocks_within(scratch, n, counts_slots(blocks_of(n)), "select", levels)
    blocks = blocks_of(n)
    for block in range(blocks):
        count = u32(0)
        for at in range(block * static(BLOCK), min(n, (block + 1) * static(BLOCK))):
            count += cast(flags[nth(flags, at)], u32)
        scratch[nth(scratch, block)] = count
    for _ in range(1):
        num_out[nth(num_out, 0)] = 0
    sums_before(scratch, blocks, static(max(levels - 1, 1)))
    for block in range(blocks):
        place = cast(scratch[nth(scratch, block)], i32)
        for at in range(block * static(BLOCK), min(n, (block + 1) * static(BLOCK))):
            if flags[nth(flags, at)] != 0:
                out[nth(out, place)] = arr[nth(arr, at)]
                place += 1
        if block == blocks - 1:
            num_out[nth(num_out, 0)] = place
