# type: ignore  (in the kernel language annotations are values, and what is static decides the types)
"""Sums over runs of equal keys, in the kernel language.

Blocks count the runs that begin in them, and the counts are added up. Each block then adds up the values of its runs; what belongs to a run that began in a block before
is its *carry*, which the block where the run began adds at the end.
"""

from __future__ import annotations

from .._language import bit_cast, cast, static
from .._session import func
from ..types import Template, i32, u32
from ._scan import sums_before
from ._scratch import (
    BLOCK,
    blocks_of,
    blocks_within,
    nth,
    reduce_by_key_scratch_slots,
    require_levels,
    require_run_values,
    select_scratch_slots,
)


@func
def _begins_run(keys: Template, at):
    """Whether a key differs from the one before it. One that is no number differs from all."""
    begins = True
    if at > 0:
        begins = keys[nth(keys, at)] != keys[nth(keys, at - 1)]
    return begins


@func
def _runs_before(scratch: Template, block, blocks, runs):
    """How many runs begin before a block."""
    before = runs
    if block < blocks:
        before = cast(scratch[nth(scratch, block)], i32)
    return before


@func(requires_top_level=True)
def reduce_by_key_add(
    keys_in: Template,
    values_in: Template,
    keys_out: Template,
    values_out: Template,
    num_runs: Template,
    scratch: Template,
    n: i32,
    value_dtype: Template,
    log256_max_n: Template,
):
    """Adds up the values of each run of equal keys among the first ``n``, and sets the first element of ``num_runs`` to how many runs there are.

    ``keys_out`` and ``values_out`` get a key and a sum for each run, in order; sums are the same in every run of the program. A key that is no number is a run of its
    own. ``scratch`` is an array of u32 of ``reduce_by_key_scratch_slots`` entries. ``log256_max_n`` says how many elements
    there are at most: 256 to that power.
    """
    levels = static(require_levels(log256_max_n))
    static(require_run_values(value_dtype))
    n = blocks_within(scratch, n, reduce_by_key_scratch_slots(n), "reduce_by_key_add", levels)
    blocks = blocks_of(n)
    carries = select_scratch_slots(n)
    for block in range(blocks):
        count = u32(0)
        for at in range(block * static(BLOCK), min(n, (block + 1) * static(BLOCK))):
            count += cast(_begins_run(keys_in, at), u32)
        scratch[nth(scratch, block)] = count
    for _ in range(1):
        num_runs[nth(num_runs, 0)] = 0
    sums_before(scratch, blocks, static(max(levels - 1, 1)))
    for block in range(blocks):
        run = cast(scratch[nth(scratch, block)], i32) - 1
        first = run
        total = cast(0, value_dtype)
        scratch[nth(scratch, carries + block)] = u32(0)
        end = min(n, (block + 1) * static(BLOCK))
        for at in range(block * static(BLOCK), end):
            if _begins_run(keys_in, at):
                run += 1
                keys_out[nth(keys_out, run)] = keys_in[nth(keys_in, at)]
                total = cast(0, value_dtype)
            total += cast(values_in[nth(values_in, at)], value_dtype)
            ends = at == end - 1
            if not ends:
                ends = _begins_run(keys_in, at + 1)
            if ends:
                if run == first:
                    scratch[nth(scratch, carries + block)] = bit_cast(total, u32)
                else:
                    values_out[nth(values_out, run)] = total
        if block == blocks - 1:
            num_runs[nth(num_runs, 0)] = run + 1
    for block in range(blocks):
        runs = cast(num_runs[nth(num_runs, 0)], i32)
        after = _runs_before(scratch, block + 1, blocks, runs)
        if after > cast(scratch[nth(scratch, block)], i32):
            total = cast(values_out[nth(values_out, after - 1)], value_dtype)
            other = block + 1
            goes_on = other < blocks
            while goes_on:
                total += bit_cast(scratch[nth(scratch, carries + other)], value_dtype)
                goes_on = _runs_before(scratch, other + 1, blocks, runs) == after
                other += 1
                if other == blocks:
                    goes_on = False
            values_out[nth(values_out, after - 1)] = total
