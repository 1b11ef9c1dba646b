# type: ignore  (in the kernel language annotations are values, and what is static decides the types)
"""Algorithms over whole arrays, as funcs that a kernel calls at its top level. Written in the kernel language.

``sort`` orders by one digit of the keys after the other, the lowest first. For a digit every block of keys counts how many of each value
it has; sums over these counts say where each block's keys go; the blocks then move their keys in order, so that equal keys stay in order.
The sums are over groups of counts, over groups of the groups' totals, and so on: each of them is a parallel loop.
"""

from __future__ import annotations

from .._language import bit_cast, cast, static
from .._not_yet import Unbuilt
from .._primitive_types import f32, f64, i32, i64, u32, u64
from .._session import func
from ..types import Template

#: Keys that one iteration counts and moves, and counts that one iteration sums up. The scratch is laid out by it.
_BLOCK = 256
#: A digit of a key, in bits.
_DIGIT_BITS = 8
_DIGITS = 1 << _DIGIT_BITS

_UNSIGNED = {i32: u32, u32: u32, f32: u32, i64: u64, u64: u64, f64: u64}
_WIDTH = {u32: 32, u64: 64}


def sort_scratch_slots(n: int, log256_max_n: int | None = None) -> int:
    """How many u32 entries ``sort`` needs as scratch for up to ``n`` keys."""
    if log256_max_n is not None:
        _require_levels(log256_max_n)
    slots, level = 0, _DIGITS * max(1, -(-n // _BLOCK))
    while level > 1:
        slots += level
        level = -(-level // _BLOCK)
    return slots + 1


def _require_levels(log256_max_n: int) -> None:
    if not 1 <= log256_max_n <= 4:
        raise ValueError(f"log256_max_n is 1 to 4, not {log256_max_n}")


def _passes(key_dtype, end_bit: int, log256_max_n: int) -> range:
    """The digits that are sorted by."""
    _require_levels(log256_max_n)
    if key_dtype not in _UNSIGNED:
        raise NotImplementedError(f"sort takes keys of i32, u32, f32, i64, u64 and f64, not {key_dtype}")
    width = _WIDTH[_UNSIGNED[key_dtype]]
    if end_bit % (2 * _DIGIT_BITS) or not 0 < end_bit <= width:
        raise ValueError(f"end_bit is a multiple of {2 * _DIGIT_BITS} up to {width}, not {end_bit}")
    return range(end_bit // _DIGIT_BITS)


@func
def _digit(key, key_dtype: Template, shift: Template):
    """A digit of a key. By these digits, as numbers without sign, keys are in order."""
    unsigned = static(_UNSIGNED[key_dtype])
    bits = bit_cast(key, unsigned)
    sign = static(1 << (_WIDTH[unsigned] - 1))
    if static(key_dtype in (f32, f64)):
        bits = ~bits if (bits & unsigned(sign)) != 0 else bits | unsigned(sign)
    elif static(key_dtype in (i32, i64)):
        bits ^= unsigned(sign)
    return cast((bits >> unsigned(shift)) & unsigned(static(_DIGITS - 1)), i32)


@func(requires_top_level=True)
def _sums_before(scratch: Template, count, levels: Template):
    """Turns each of the first ``count`` entries into the sum of those before it. The totals of groups follow the entries."""
    begin, size = 0, count
    for _ in static(range(levels)):
        groups = (size + static(_BLOCK - 1)) // static(_BLOCK)
        for group in range(groups):
            total = u32(0)
            for at in range(begin + group * static(_BLOCK), begin + min(size, (group + 1) * static(_BLOCK))):
                value = scratch[at]
                scratch[at] = total
                total += value
            scratch[begin + size + group] = total
        begin += size
        size = groups
    for down in static(range(levels - 1)):
        begin, size = 0, count
        for _ in static(range(levels - 2 - down)):
            begin += size
            size = (size + static(_BLOCK - 1)) // static(_BLOCK)
        for at in range(size):
            scratch[begin + at] += scratch[begin + size + at // static(_BLOCK)]


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
    blocks = (n + static(_BLOCK - 1)) // static(_BLOCK)
    for block in range(blocks):
        for digit in range(static(_DIGITS)):
            scratch[digit * blocks + block] = u32(0)
        for at in range(block * static(_BLOCK), min(n, (block + 1) * static(_BLOCK))):
            slot = _digit(source[at], key_dtype, shift) * blocks + block
            scratch[slot] = scratch[slot] + u32(1)
    _sums_before(scratch, blocks * static(_DIGITS), levels)
    for block in range(blocks):
        for at in range(block * static(_BLOCK), min(n, (block + 1) * static(_BLOCK))):
            key = source[at]
            slot = _digit(key, key_dtype, shift) * blocks + block
            place = cast(scratch[slot], i32)
            scratch[slot] = scratch[slot] + u32(1)
            target[place] = key
            if static(has_values):
                moved[place] = values[at]


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
    for index in static(_passes(key_dtype, end_bit, log256_max_n)):
        count = n[None]
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
                _DIGIT_BITS * index,
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
                _DIGIT_BITS * index,
                log256_max_n,
            )


def __getattr__(name: str):
    if name in _LATER:
        return Unbuilt(f"algorithms.{name}", "write the loop as a kernel, or use numpy on to_numpy()")
    raise AttributeError(f"module 'octants.algorithms' has no attribute {name!r}")


_LATER = (
    "PrefixSumExecutor", "exclusive_scan_add", "exclusive_scan_max", "exclusive_scan_min", "exclusive_scan_scratch_slots", "parallel_sort",
    "reduce_add", "reduce_by_key_add", "reduce_by_key_scratch_slots", "reduce_max", "reduce_min", "reduce_scratch_slots", "select",
    "select_scratch_slots",
)  # fmt: skip
