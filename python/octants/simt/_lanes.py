# type: ignore  (in the kernel language annotations are values, and what is static decides the types)
"""Lanes of a subgroup: how many there are, tiles of them, which of them hold something.

A tile is an aligned run of ``2**log2_size`` lanes. Nothing here reads from a lane outside of the tile, so that tiles of a block of half a subgroup work.
"""

from __future__ import annotations

from .._language import cast, deprecated, static, static_assert
from .._language.pyfunc import pyfunc
from .._primitive_types import i32, u32, u64
from .._session import func
from ..types import Template
from ._primitives import ballot, block_fence, block_threads, invocation_id, shuffle, subgroup_sync

LOG2_GROUP_SIZE = 5
GROUP_SIZE = 1 << LOG2_GROUP_SIZE


@pyfunc
def group_size():
    """How many lanes a subgroup has, on the host and in kernels."""
    return GROUP_SIZE


@pyfunc
def log2_group_size():
    """The logarithm of ``group_size()`` to the base 2, on the host and in kernels."""
    return LOG2_GROUP_SIZE


@func
def elect():
    """1 on lane 0, 0 on every other lane."""
    return cast(invocation_id() == 0, i32)


@func
def mem_fence():
    """What this lane wrote before is seen by its subgroup before what it writes later."""
    block_fence()


@func
def barrier():
    """The old name of ``sync``."""
    deprecated("simt.subgroup.barrier", "simt.subgroup.sync")
    subgroup_sync()


@func
def memory_barrier():
    """The old name of ``mem_fence``."""
    deprecated("simt.subgroup.memory_barrier", "simt.subgroup.mem_fence")
    block_fence()


# ---- which lanes ---------------------------------------------------------------------------------------------------------


@func
def lane_in_tile(log2_size: Template):
    """The lane's number in its tile."""
    return invocation_id() & static((1 << log2_size) - 1)


@func
def require_tile(log2_size: Template):
    """Refuses tiles that no subgroup has."""
    static_assert(
        static(0 <= log2_size <= LOG2_GROUP_SIZE),
        f"tiles of a subgroup have 2**log2_size lanes, where log2_size is 0 to {LOG2_GROUP_SIZE}; it is {log2_size}",
    )
    static_assert(
        block_threads() % static(1 << max(log2_size, 0)) == 0,
        f"the loop's block_dim is no whole number of tiles of {1 << max(log2_size, 0)} lanes: use oc.loop_config(block_dim=...), or a form that ends with _tiled",
    )


@func
def lanes_of_tile(bits, log2_size: Template):
    """Of bits of lanes, those of this lane's tile; the tile's first lane is bit 0."""
    first = cast(invocation_id() & static(-(1 << log2_size)), u64)
    return (bits >> first) & u64(static((1 << (1 << log2_size)) - 1))


@func
def ballot_first_n(predicate, n: Template):
    """On which of the first ``n`` lanes, 1 to 32, the predicate is not zero: a bit for each, as ``u32``."""
    static_assert(static(1 <= n <= 32), f"ballot_first_n takes 1 to 32 lanes, not {n}")
    return cast(ballot(predicate) & u64(static((1 << n) - 1)), u32)


@func
def ballot_full_subgroup(predicate):
    """The old name of ``ballot``."""
    deprecated("simt.subgroup.ballot_full_subgroup", "simt.subgroup.ballot")
    return ballot(predicate)


@func
def lanemask_eq(lane):
    """The bit of a lane, of 0 to 31."""
    return u32(1) << cast(lane, u32)


@func
def lanemask_lt(lane):
    """The bits of the lanes before a lane, of 0 to 31."""
    return lanemask_eq(lane) - u32(1)


@func
def lanemask_le(lane):
    """The bits of a lane, of 0 to 31, and of those before it."""
    return lanemask_lt(lane) | lanemask_eq(lane)


@func
def lanemask_gt(lane):
    """The bits of the lanes behind a lane, of 0 to 31."""
    return ~lanemask_le(lane)


@func
def lanemask_ge(lane):
    """The bits of a lane, of 0 to 31, and of those behind it."""
    return ~lanemask_lt(lane)


# ---- votes ---------------------------------------------------------------------------------------------------------------


@func
def all_true_tiled(predicate, log2_size: Template):
    """1 where the predicate is not zero on all lanes of the tile, else 0."""
    require_tile(log2_size)
    return cast(lanes_of_tile(ballot(not predicate), log2_size) == u64(0), i32)


@func
def any_true_tiled(predicate, log2_size: Template):
    """1 where the predicate is not zero on some lane of the tile, else 0."""
    require_tile(log2_size)
    return cast(lanes_of_tile(ballot(predicate), log2_size) != u64(0), i32)


@func
def all_equal_tiled(value, log2_size: Template):
    """1 where the value is equal on all lanes of the tile, else 0. A NaN is equal to nothing."""
    require_tile(log2_size)
    first = shuffle(value, invocation_id() & static(-(1 << log2_size)))
    return all_true_tiled(value == first, log2_size)


@func
def all_true(predicate):
    """1 where the predicate is not zero on all lanes, else 0."""
    return all_true_tiled(predicate, LOG2_GROUP_SIZE)


@func
def any_true(predicate):
    """1 where the predicate is not zero on some lane, else 0."""
    return any_true_tiled(predicate, LOG2_GROUP_SIZE)


@func
def all_equal(value):
    """1 where the value is equal on all lanes, else 0. A NaN is equal to nothing."""
    return all_equal_tiled(value, LOG2_GROUP_SIZE)


@func
def broadcast(value, lane):
    """What ``value`` is on a lane, which is the same for all lanes that ask."""
    return shuffle(value, lane)


@func
def broadcast_first(value):
    """What ``value`` is on lane 0."""
    return shuffle(value, 0)
