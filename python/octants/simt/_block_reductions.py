# type: ignore  (in the kernel language annotations are values, and what is static decides the types)
"""Reductions over a block: subgroups reduce in registers, and then what they came to, which each leaves in shared memory.

All subgroups do the second step, so that it needs no second barrier to hand on the result. What a block of one subgroup does needs no memory.
"""

from __future__ import annotations

from .._language import static, static_assert
from .._session import func
from ..types import Template
from ._lanes import GROUP_SIZE, LOG2_GROUP_SIZE
from ._operators import added, greater, lesser, of_type
from ._primitives import SharedArray, block_sync, block_threads, invocation_id, shuffle, thread_idx
from ._subgroup_reductions import reduce_tiled


@func
def require_block(block_dim: Template, name: Template):
    """Refuses blocks that are no whole subgroups, and another ``block_dim`` than the loop's."""
    static_assert(
        static(block_dim > 0 and block_dim % GROUP_SIZE == 0),
        f"simt.block.{name} takes a block_dim that is a multiple of the subgroup's size, {GROUP_SIZE}; it is {block_dim}",
    )
    static_assert(
        block_threads() == block_dim,
        f"simt.block.{name} takes the block_dim of the loop, oc.loop_config(block_dim=...); here it is given {block_dim}",
    )


@func
def fold_lanes(value, op: Template, lanes: Template):
    """What the first ``lanes`` lanes of the subgroup come to, in their order, on lane 0."""
    lane = invocation_id()
    for bit in static(range((lanes - 1).bit_length())):
        above = lane + static(1 << bit)
        other = shuffle(value, above & static(GROUP_SIZE - 1))
        if above < static(lanes):
            value = op(value, other)
    return value


@func
def reduce_all(value, block_dim: Template, op: Template, dtype: Template):
    """What the values of the block's threads come to by an associative ``op``, in the order of the threads: the same bits on all threads."""
    require_block(block_dim, "reduce")
    total = reduce_tiled(of_type(value, dtype), op, LOG2_GROUP_SIZE)
    if static(block_dim > GROUP_SIZE):
        totals = SharedArray(static(block_dim // GROUP_SIZE), dtype)
        lane = invocation_id()
        if lane == 0:
            totals[thread_idx() // GROUP_SIZE] = total
        block_sync()
        total = totals[min(lane, static(block_dim // GROUP_SIZE - 1))]
        block_sync()
        total = fold_lanes(total, op, static(block_dim // GROUP_SIZE))
    return shuffle(total, 0)


@func
def reduce(value, block_dim: Template, op: Template, dtype: Template):
    """As ``reduce_all``; a program may count on the result on thread 0 alone."""
    return reduce_all(value, block_dim, op, dtype)


@func
def reduce_add(value, block_dim: Template, dtype: Template):
    """The sum over the block, on thread 0."""
    return reduce(value, block_dim, added, dtype)


@func
def reduce_min(value, block_dim: Template, dtype: Template):
    """The least over the block, on thread 0."""
    return reduce(value, block_dim, lesser, dtype)


@func
def reduce_max(value, block_dim: Template, dtype: Template):
    """The greatest over the block, on thread 0."""
    return reduce(value, block_dim, greater, dtype)


@func
def reduce_all_add(value, block_dim: Template, dtype: Template):
    """The sum over the block, on all threads."""
    return reduce_all(value, block_dim, added, dtype)


@func
def reduce_all_min(value, block_dim: Template, dtype: Template):
    """The least over the block, on all threads."""
    return reduce_all(value, block_dim, lesser, dtype)


@func
def reduce_all_max(value, block_dim: Template, dtype: Template):
    """The greatest over the block, on all threads."""
    return reduce_all(value, block_dim, greater, dtype)
