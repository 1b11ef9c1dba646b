# type: ignore  (in the kernel language annotations are values, and what is static decides the types)
"""Scans over a block: what the threads up to each thread come to, with that thread or without it.

Subgroups scan in registers and leave in shared memory what they come to; each then combines what the subgroups before it came to.
"""

from __future__ import annotations

from .._language import static, zero
from .._session import func
from ..types import Template
from ._block_reductions import require_block
from ._lanes import GROUP_SIZE, LOG2_GROUP_SIZE
from ._operators import added, greater, lesser, of_type
from ._primitives import SharedArray, block_sync, greatest_of, invocation_id, least_of, shuffle, thread_idx
from ._subgroup_scans import exclusive_tiled, inclusive_tiled


@func
def _total_before(total, block_dim: Template, op: Template, dtype: Template):
    """What the subgroups before this one come to, of what each has on its last lane. On the first subgroup, anything."""
    totals = SharedArray(static(block_dim // GROUP_SIZE), dtype)
    lane = invocation_id()
    subgroup = thread_idx() // GROUP_SIZE
    if lane == static(GROUP_SIZE - 1):
        totals[subgroup] = total
    block_sync()
    of_lane = totals[min(lane, static(block_dim // GROUP_SIZE - 1))]
    block_sync()
    up_to_lane = inclusive_tiled(of_lane, op, static((block_dim // GROUP_SIZE - 1).bit_length()))
    return shuffle(up_to_lane, max(subgroup - 1, 0))


@func
def inclusive_scan(value, block_dim: Template, op: Template, dtype: Template):
    """What the values of the threads up to this one come to by an associative ``op``, in the order of the threads."""
    require_block(block_dim, "inclusive_scan")
    scanned = inclusive_tiled(of_type(value, dtype), op, LOG2_GROUP_SIZE)
    if static(block_dim > GROUP_SIZE):
        before = _total_before(scanned, block_dim, op, dtype)
        if thread_idx() >= GROUP_SIZE:
            scanned = op(before, scanned)
    return scanned


@func
def exclusive_scan(value, block_dim: Template, op: Template, identity, dtype: Template):
    """What the values of the threads before this one come to by an associative ``op``; on thread 0 ``identity``."""
    require_block(block_dim, "exclusive_scan")
    own = of_type(value, dtype)
    scanned = exclusive_tiled(own, op, of_type(identity, dtype), LOG2_GROUP_SIZE)
    if static(block_dim > GROUP_SIZE):
        before = _total_before(op(scanned, own), block_dim, op, dtype)
        if thread_idx() >= GROUP_SIZE:
            scanned = op(before, scanned)
    return scanned


@func
def inclusive_add(value, block_dim: Template, dtype: Template):
    """The sum over the threads up to this one."""
    return inclusive_scan(value, block_dim, added, dtype)


@func
def inclusive_min(value, block_dim: Template, dtype: Template):
    """The least over the threads up to this one."""
    return inclusive_scan(value, block_dim, lesser, dtype)


@func
def inclusive_max(value, block_dim: Template, dtype: Template):
    """The greatest over the threads up to this one."""
    return inclusive_scan(value, block_dim, greater, dtype)


@func
def exclusive_add(value, block_dim: Template, dtype: Template):
    """The sum over the threads before this one; on thread 0, 0."""
    return exclusive_scan(value, block_dim, added, zero(of_type(value, dtype)), dtype)


@func
def exclusive_min(value, block_dim: Template, dtype: Template):
    """The least over the threads before this one; on thread 0, the greatest number of the type."""
    return exclusive_scan(value, block_dim, lesser, greatest_of(of_type(value, dtype)), dtype)


@func
def exclusive_max(value, block_dim: Template, dtype: Template):
    """The greatest over the threads before this one; on thread 0, the least number of the type."""
    return exclusive_scan(value, block_dim, greater, least_of(of_type(value, dtype)), dtype)
