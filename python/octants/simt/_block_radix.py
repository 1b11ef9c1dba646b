# type: ignore  (in the kernel language annotations are values, and what is static decides the types)
"""The step of a radix sort that a block does: where each key goes among the keys of the block, by one digit, in a stable way.

Lanes of a subgroup find those with the same digit by one vote per bit. Each subgroup counts its keys by digit; sums over the subgroups, and over the digits, say where
the keys of a subgroup with a digit begin.
"""

from __future__ import annotations

from .._language import cast, static, static_assert
from .._primitive_types import i32, u32
from .._session import func
from ..math import popcnt
from ..types import Template
from ._block_scans import exclusive_add
from ._lanes import GROUP_SIZE, lanemask_lt
from ._primitives import SharedArray, ballot, block_sync, invocation_id, thread_idx


@func
def _lanes_with(digit, num_bits: Template):
    """The bits of the lanes that have the same digit."""
    lanes = u32(0xFFFFFFFF)
    for bit in static(range(num_bits)):
        is_set = (digit >> static(bit)) & 1
        voters = cast(ballot(is_set), u32)
        lanes &= voters if is_set != 0 else ~voters
    return lanes


@func
def radix_rank_match_atomic_or(
    key,
    block_dim: Template,
    radix_bits: Template,
    bit_start: Template,
    num_bits: Template,
    bins: Template,
    excl_prefix: Template,
):
    """The place of the thread's key, of u32, among those of the block, by ``num_bits`` bits from ``bit_start`` on. Equal ones stay in order.

    A block has a thread for each digit: ``block_dim`` is ``1 << radix_bits``. ``bins`` and ``excl_prefix``, shared arrays of as many ``i32``, are set to how many
    keys have each digit, and how many have a lower one. All threads see them when the call is over.
    """
    static_assert(
        static(block_dim == 1 << radix_bits and block_dim % GROUP_SIZE == 0),
        f"simt.block.radix_rank_match_atomic_or takes a block_dim of 1 << radix_bits that is a multiple of {GROUP_SIZE}; with radix_bits={radix_bits} it is {block_dim}",
    )
    static_assert(
        static(0 <= num_bits <= radix_bits and bit_start >= 0 and bit_start + num_bits <= 32),
        f"a digit has at most radix_bits={radix_bits} bits, of the 32 of a key; here it is {num_bits} bits from {bit_start} on",
    )
    thread = thread_idx()
    subgroup = thread // GROUP_SIZE
    digit = cast((key >> u32(static(bit_start % 32))) & u32(static((1 << num_bits) - 1)), i32)
    counts = SharedArray(static((block_dim // GROUP_SIZE, block_dim)), i32)
    for other in static(range(block_dim // GROUP_SIZE)):
        counts[other, thread] = 0
    block_sync()
    same = _lanes_with(digit, num_bits)
    before = cast(popcnt(same & lanemask_lt(invocation_id())), i32)
    if before == 0:
        counts[subgroup, digit] = cast(popcnt(same), i32)
    block_sync()
    # Now the thread is about the digit of its number.
    total = 0
    for other in static(range(block_dim // GROUP_SIZE)):
        count = counts[other, thread]
        counts[other, thread] = total
        total += count
    lower = exclusive_add(total, block_dim, i32)
    bins[thread] = total
    excl_prefix[thread] = lower
    block_sync()
    rank = excl_prefix[digit] + counts[subgroup, digit] + before
    # The next call begins with writing to both.
    block_sync()
    return rank
