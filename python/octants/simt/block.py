# type: ignore  (in the kernel language annotations are values, and what is static decides the types)
"""What the threads of a block do together: barriers, shared memory, reductions, scans.

All threads of the block make the call. A reduction or scan ends with a barrier where it uses shared memory, so that the next one may begin at once.
"""

from __future__ import annotations

from .._language import cast, deprecated
from .._primitive_types import i32
from .._session import func
from ._block_radix import radix_rank_match_atomic_or
from ._block_reductions import (
    reduce,
    reduce_add,
    reduce_all,
    reduce_all_add,
    reduce_all_max,
    reduce_all_min,
    reduce_max,
    reduce_min,
)
from ._block_scans import (
    exclusive_add,
    exclusive_max,
    exclusive_min,
    exclusive_scan,
    inclusive_add,
    inclusive_max,
    inclusive_min,
    inclusive_scan,
)
from ._primitives import SharedArray, block_count, block_threads, global_thread_idx, thread_idx
from ._primitives import block_fence as mem_fence
from ._primitives import block_sync as sync

__all__ = [
    "SharedArray",
    "exclusive_add",
    "exclusive_max",
    "exclusive_min",
    "exclusive_scan",
    "global_thread_idx",
    "inclusive_add",
    "inclusive_max",
    "inclusive_min",
    "inclusive_scan",
    "mem_fence",
    "mem_sync",
    "radix_rank_match_atomic_or",
    "reduce",
    "reduce_add",
    "reduce_all",
    "reduce_all_add",
    "reduce_all_max",
    "reduce_all_min",
    "reduce_max",
    "reduce_min",
    "sync",
    "sync_all_nonzero",
    "sync_any_nonzero",
    "sync_count_nonzero",
    "thread_idx",
]


@func
def sync_count_nonzero(predicate):
    """A barrier; on how many threads the predicate is not zero."""
    return block_count(predicate)


@func
def sync_all_nonzero(predicate):
    """A barrier; 1 if the predicate is not zero on all threads, else 0."""
    return cast(block_count(predicate) == block_threads(), i32)


@func
def sync_any_nonzero(predicate):
    """A barrier; 1 if the predicate is not zero on some thread, else 0."""
    return cast(block_count(predicate) != 0, i32)


@func
def mem_sync():
    """The old name of ``mem_fence``."""
    deprecated("simt.block.mem_sync", "simt.block.mem_fence")
    mem_fence()
