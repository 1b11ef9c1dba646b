# type: ignore  (in the kernel language annotations are values, and what is static decides the types)
"""Sorting, in the kernel language.

``sort`` orders by one digit of the keys after the other, the lowest first. For a digit every block of keys counts how many of each value
it has; sums over these counts say where each block's keys go; the blocks then move their keys in order, so that equal keys stay in order.
"""

from __future__ import annotations

from .._language import bit_cast, cast, static
from .._primitive_types import f32, f64, i32, i64, u32
from .._session import func
from ..types import Template
from ._scan import sums_before
from ._scratch import (
    BLOCK,
    DIGIT_BITS,
    DIGITS,
    UNSIGNED,
    WIDTH,
    blocks_of,
    blocks_within,
    counts_slots,
    nth,
    sort_passes,
    sort_scratch_slots,
)

__all__ = ["sort", "sort_scratch_slots"]


@func
def _digit(key, key_dtype: Template, shift: Template):
    """A digit of a key. By these digits, as numbers without sign, keys are in order."""
    unsigned = static(UNSIGNED[key_dtype])
    bits = bit_cast(key, unsigned)
    sign = static(1 << (WIDTH[unsigned] - 1))
    if static(key_dtype in (f32, f64)):
        bits = ~bits if (bits & unsigned(sign)) != 0 else bits | unsigned(sign)
    elif static(key_dtype in (i32, i64)):
        bits ^= unsigned(sign)
    return cast((bits >> unsigned(shift)) & unsigned(static(DIGITS - 1)), i32)


@func(requires_top_level=True)
def _sort_by_digit(
    source: Template,
    target: Template,
    values: Template,
    moved: Template,
    scratch: Template,
    n,
    key_dtype: Template,
    has_values: Template,
    shift: Template,
    levels: Template,
):
    blocks = (n + static(BLOCK - 1)) // static(BLOCK)
    for block in range(blocks):
        for digit in range(static(DIGITS)):
            scratch[nth(scratch, digit * blocks + block)] = u32(0)
        for at in range(block * static(BLOCK), min(n, (block + 1) * static(BLOCK))):
            key = source[nth(source, at)]
            slot = nth(scratch, _digit(key, key_dtype, shift) * blocks + block)
            scratch[slot] = scratch[slot] + u32(1)
    sums_before(scratch, blocks * static(DIGITS), levels)
    for block in range(blocks):
        for at in range(block * static(BLOCK), min(n, (block + 1) * static(BLOCK))):
            key = source[nth(source, at)]
            slot = nth(scratch, _digit(key, key_dtype, shift) * blocks + block)
            place = cast(scratch[slot], i32)
            scratch[slot] = scratch[slot] + u32(1)
            target[nth(target, place)] = key
            if static(has_values):
                moved[nth(moved, place)] = values[nth(values, at)]


@func(requires_top_level=True)
def sort(
    keys: Template,
    tmp_keys: Template,
    values: Template,
    tmp_values: Template,
    scratch: Template,
    n: Template,
    key_dtype: Template,
    has_values: Template,
    end_bit: Template,
    log256_max_n: Template,
):
    """Sorts the first ``n[None]`` keys, and with ``has_values`` the values along with them. Equal keys stay in order.

    Without values the keys stand in their places. ``scratch`` is an array of u32 of ``sort_scratch_slots`` entries. Keys are compared by
    their lowest ``end_bit`` bits. ``log256_max_n`` says how many keys there are at most: 256 to that power.
    """
    for index in static(sort_passes(key_dtype, end_bit, log256_max_n)):
        count = blocks_within(scratch, n[None], counts_slots(blocks_of(n[None]) * DIGITS), "sort", log256_max_n)
        if static(index % 2 == 0):
            _sort_by_digit(
                keys,
                tmp_keys,
                values,
                tmp_values,
                scratch,
                count,
                key_dtype,
                has_values,
                DIGIT_BITS * index,
                log256_max_n,
            )
        else:
            _sort_by_digit(
                tmp_keys,
                keys,
                tmp_values,
                values,
                scratch,
                count,
                key_dtype,
                has_values,
                DIGIT_BITS * index,
                log256_max_n,
            )
