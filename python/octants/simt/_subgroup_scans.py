# type: ignore  (in the kernel language annotations are values, and what is static decides the types)
"""Scans over a subgroup or its tiles: what the lanes up to each lane come to, with that lane or without it.

In each step a lane combines what a lane below has, 1, 2, 4 ... lanes away, with what it has itself, in this order: ``op`` need not commute. An exclusive scan is
that of values which moved one lane up.
"""

from __future__ import annotations

from .._language import one, static, zero
from .._session import func
from ..types import Template
from ._lanes import LOG2_GROUP_SIZE, lane_in_tile, require_tile
from ._operators import added, bits_of_both, bits_of_either, bits_of_one, greater, lesser, multiplied
from ._primitives import greatest_of, least_of, shuffle_up


@func
def inclusive_tiled(value, op: Template, log2_size: Template):
    """What the lanes of the tile come to, up to this lane and with it."""
    require_tile(log2_size)
    lane = lane_in_tile(log2_size)
    for bit in static(range(log2_size)):
        before = shuffle_up(value, static(1 << bit))
        if lane >= static(1 << bit):
            value = op(before, value)
    return value


@func
def exclusive_tiled(value, op: Template, identity, log2_size: Template):
    """What the lanes of the tile before this lane come to; on its first lane, ``identity``."""
    before = shuffle_up(value, 1)
    if lane_in_tile(log2_size) == 0:
        before = identity
    return inclusive_tiled(before, op, log2_size)


# ---- inclusive ---------------------------------------------------------------------------------------------------------


@func
def inclusive_add_tiled(value, log2_size: Template):
    """The sum over the tile, up to this lane."""
    return inclusive_tiled(value, added, log2_size)


@func
def inclusive_add(value):
    """The sum over the subgroup, up to this lane."""
    return inclusive_add_tiled(value, LOG2_GROUP_SIZE)


@func
def inclusive_mul_tiled(value, log2_size: Template):
    """The product over the tile, up to this lane."""
    return inclusive_tiled(value, multiplied, log2_size)


@func
def inclusive_mul(value):
    """The product over the subgroup, up to this lane."""
    return inclusive_mul_tiled(value, LOG2_GROUP_SIZE)


@func
def inclusive_min_tiled(value, log2_size: Template):
    """The least over the tile, up to this lane."""
    return inclusive_tiled(value, lesser, log2_size)


@func
def inclusive_min(value):
    """The least over the subgroup, up to this lane."""
    return inclusive_min_tiled(value, LOG2_GROUP_SIZE)


@func
def inclusive_max_tiled(value, log2_size: Template):
    """The greatest over the tile, up to this lane."""
    return inclusive_tiled(value, greater, log2_size)


@func
def inclusive_max(value):
    """The greatest over the subgroup, up to this lane."""
    return inclusive_max_tiled(value, LOG2_GROUP_SIZE)


@func
def inclusive_and_tiled(value, log2_size: Template):
    """The bits that are set on all lanes of the tile, up to this one."""
    return inclusive_tiled(value, bits_of_both, log2_size)


@func
def inclusive_and(value):
    """The bits that are set on all lanes, up to this one."""
    return inclusive_and_tiled(value, LOG2_GROUP_SIZE)


@func
def inclusive_or_tiled(value, log2_size: Template):
    """The bits that are set on any lane of the tile, up to this one."""
    return inclusive_tiled(value, bits_of_either, log2_size)


@func
def inclusive_or(value):
    """The bits that are set on any lane, up to this one."""
    return inclusive_or_tiled(value, LOG2_GROUP_SIZE)


@func
def inclusive_xor_tiled(value, log2_size: Template):
    """The bits that are set on an odd number of lanes of the tile, up to this one."""
    return inclusive_tiled(value, bits_of_one, log2_size)


@func
def inclusive_xor(value):
    """The bits that are set on an odd number of lanes, up to this one."""
    return inclusive_xor_tiled(value, LOG2_GROUP_SIZE)


# ---- exclusive ---------------------------------------------------------------------------------------------------------


@func
def exclusive_add_tiled(value, log2_size: Template):
    """The sum over the tile, before this lane; on the first one 0."""
    return exclusive_tiled(value, added, zero(value), log2_size)


@func
def exclusive_add(value):
    """The sum over the subgroup, before this lane; on lane 0 0."""
    return exclusive_add_tiled(value, LOG2_GROUP_SIZE)


@func
def exclusive_mul_tiled(value, log2_size: Template):
    """The product over the tile, before this lane; on the first one 1."""
    return exclusive_tiled(value, multiplied, one(value), log2_size)


@func
def exclusive_mul(value):
    """The product over the subgroup, before this lane; on lane 0 1."""
    return exclusive_mul_tiled(value, LOG2_GROUP_SIZE)


@func
def exclusive_min_tiled(value, log2_size: Template):
    """The least over the tile, before this lane; on the first one the greatest number of the type."""
    return exclusive_tiled(value, lesser, greatest_of(value), log2_size)


@func
def exclusive_min(value):
    """The least over the subgroup, before this lane; on lane 0 the greatest number of the type."""
    return exclusive_min_tiled(value, LOG2_GROUP_SIZE)


@func
def exclusive_max_tiled(value, log2_size: Template):
    """The greatest over the tile, before this lane; on the first one the least number of the type."""
    return exclusive_tiled(value, greater, least_of(value), log2_size)


@func
def exclusive_max(value):
    """The greatest over the subgroup, before this lane; on lane 0 the least number of the type."""
    return exclusive_max_tiled(value, LOG2_GROUP_SIZE)


@func
def exclusive_and_tiled(value, log2_size: Template):
    """The bits that are set on all lanes of the tile, before this one; on the first one all bits."""
    return exclusive_tiled(value, bits_of_both, ~zero(value), log2_size)


@func
def exclusive_and(value):
    """The bits that are set on all lanes, before this one; on lane 0 all bits."""
    return exclusive_and_tiled(value, LOG2_GROUP_SIZE)


@func
def exclusive_or_tiled(value, log2_size: Template):
    """The bits that are set on any lane of the tile, before this one; on the first one 0."""
    return exclusive_tiled(value, bits_of_either, zero(value), log2_size)


@func
def exclusive_or(value):
    """The bits that are set on any lane, before this one; on lane 0 0."""
    return exclusive_or_tiled(value, LOG2_GROUP_SIZE)


@func
def exclusive_xor_tiled(value, log2_size: Template):
    """The bits that are set on an odd number of lanes of the tile, before this one; on the first one 0."""
    return exclusive_tiled(value, bits_of_one, zero(value), log2_size)


@func
def exclusive_xor(value):
    """The bits that are set on an odd number of lanes, before this one; on lane 0 0."""
    return exclusive_xor_tiled(value, LOG2_GROUP_SIZE)
