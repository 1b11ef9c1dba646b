# type: ignore  (in the kernel language annotations are values, and what is static decides the types)
"""Reductions over a subgroup or its tiles.

Lanes exchange what they have with the lane whose number differs in one bit, from the lowest bit on. So runs of 2, 4, 8 ... lanes are combined, and each run in the
order of its lanes on its first lane: ``op`` need not commute. Where all lanes want the result, both lanes of a pair combine the same two values in the same
order, and so have the same bits.
"""

from __future__ import annotations

from .._language import cast, static
from .._primitive_types import i32, u64
from .._session import func
from ..math import clz
from ..types import Template
from ._lanes import LOG2_GROUP_SIZE, require_tile
from ._operators import added, greater, lesser
from ._primitives import ballot, invocation_id, shuffle_up, shuffle_xor


@func
def reduce_tiled(value, op: Template, log2_size: Template):
    """What the lanes of the tile come to, on the tile's first lane."""
    require_tile(log2_size)
    for bit in static(range(log2_size)):
        value = op(value, shuffle_xor(value, static(1 << bit)))
    return value


@func
def reduce_all_tiled(value, op: Template, log2_size: Template):
    """What the lanes of the tile come to, with the same bits on all lanes."""
    require_tile(log2_size)
    lane = invocation_id()
    for bit in static(range(log2_size)):
        first = value
        second = shuffle_xor(value, static(1 << bit))
        if lane & static(1 << bit) != 0:
            value = second
            second = first
            first = value
        value = op(first, second)
    return value


@func
def reduce_add_tiled(value, log2_size: Template):
    """The sum over the tile, on its first lane."""
    return reduce_tiled(value, added, log2_size)


@func
def reduce_min_tiled(value, log2_size: Template):
    """The least over the tile, on its first lane."""
    return reduce_tiled(value, lesser, log2_size)


@func
def reduce_max_tiled(value, log2_size: Template):
    """The greatest over the tile, on its first lane."""
    return reduce_tiled(value, greater, log2_size)


@func
def reduce_all_add_tiled(value, log2_size: Template):
    """The sum over the tile, the same bits on all lanes."""
    return reduce_tiled(value, added, log2_size)  # A sum does not depend on the order of its two operands.


@func
def reduce_all_min_tiled(value, log2_size: Template):
    """The least over the tile, the same bits on all lanes."""
    return reduce_all_tiled(value, lesser, log2_size)


@func
def reduce_all_max_tiled(value, log2_size: Template):
    """The greatest over the tile, the same bits on all lanes."""
    return reduce_all_tiled(value, greater, log2_size)


@func
def reduce_add(value):
    """The sum over the subgroup, on lane 0."""
    return reduce_add_tiled(value, LOG2_GROUP_SIZE)


@func
def reduce_min(value):
    """The least over the subgroup, on lane 0."""
    return reduce_min_tiled(value, LOG2_GROUP_SIZE)


@func
def reduce_max(value):
    """The greatest over the subgroup, on lane 0."""
    return reduce_max_tiled(value, LOG2_GROUP_SIZE)


@func
def reduce_all_add(value):
    """The sum over the subgroup, the same bits on all lanes."""
    return reduce_all_add_tiled(value, LOG2_GROUP_SIZE)


@func
def reduce_all_min(value):
    """The least over the subgroup, the same bits on all lanes."""
    return reduce_all_min_tiled(value, LOG2_GROUP_SIZE)


@func
def reduce_all_max(value):
    """The greatest over the subgroup, the same bits on all lanes."""
    return reduce_all_max_tiled(value, LOG2_GROUP_SIZE)


# ---- segments ------------------------------------------------------------------------------------------------------------


@func
def _lanes_since_head(head_flag, log2_size: Template):
    """How many lanes ago the lane's segment began. A tile's first lane begins one."""
    require_tile(log2_size)
    lane = invocation_id()
    up_to_lane = (u64(2) << cast(lane, u64)) - u64(1)
    first_of_tile = u64(1) << cast(lane & static(-(1 << log2_size)), u64)
    heads = (ballot(head_flag) & up_to_lane) | first_of_tile
    return lane - (63 - cast(clz(heads), i32))


@func
def segmented_reduce_tiled(value, head_flag, op: Template, log2_size: Template):
    """What the lanes of the segment come to, up to this lane."""
    since_head = _lanes_since_head(head_flag, log2_size)
    for bit in static(range(log2_size)):
        before = shuffle_up(value, static(1 << bit))
        if since_head >= static(1 << bit):
            value = op(before, value)
    return value


@func
def segmented_reduce_add_tiled(value, head_flag, log2_size: Template):
    """The sum from the last lane of the tile where ``head_flag`` is not zero, or its first lane, up to this lane."""
    return segmented_reduce_tiled(value, head_flag, added, log2_size)


@func
def segmented_reduce_min_tiled(value, head_flag, log2_size: Template):
    """The least from the last lane of the tile where ``head_flag`` is not zero, or its first lane, up to this lane."""
    return segmented_reduce_tiled(value, head_flag, lesser, log2_size)


@func
def segmented_reduce_max_tiled(value, head_flag, log2_size: Template):
    """The greatest from the last lane of the tile where ``head_flag`` is not zero, or its first lane, up to this lane."""
    return segmented_reduce_tiled(value, head_flag, greater, log2_size)


@func
def segmented_reduce_add(value, head_flag):
    """The sum from the last lane where ``head_flag`` is not zero, or lane 0, up to this lane."""
    return segmented_reduce_add_tiled(value, head_flag, LOG2_GROUP_SIZE)


@func
def segmented_reduce_min(value, head_flag):
    """The least from the last lane where ``head_flag`` is not zero, or lane 0, up to this lane."""
    return segmented_reduce_min_tiled(value, head_flag, LOG2_GROUP_SIZE)


@func
def segmented_reduce_max(value, head_flag):
    """The greatest from the last lane where ``head_flag`` is not zero, or lane 0, up to this lane."""
    return segmented_reduce_max_tiled(value, head_flag, LOG2_GROUP_SIZE)
