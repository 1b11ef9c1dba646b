"""What threads of a block do together, as far as it is an operation of the language's own. The rest of ``oc.simt`` is written with these."""

from __future__ import annotations

from .._language import _marked, _only_in_kernels
from .._language.threads import global_thread_idx as global_thread_idx
from .._language.threads import invocation_id as invocation_id


def _primitive(name: str, spelling: str, doc: str):
    def primitive(*args, **kwargs):
        raise _only_in_kernels(spelling)

    primitive.__doc__ = doc
    return _marked(name)(primitive)


SharedArray = _primitive(
    "SharedArray",
    "simt.block.SharedArray",
    """Memory that the threads of a block share: ``SharedArray(shape, dtype)``, with extents and a type that are known while compiling.

    What is in it at first is undefined. It is read and written as any array; what one thread wrote another one reads behind a barrier.
    """,
)
block_sync = _primitive(
    "block_sync", "simt.block.sync", "All threads of the block wait for each other, and see what each other wrote."
)
block_count = _primitive(
    "block_count",
    "simt.block.sync_count_nonzero",
    "A barrier of the block; for how many of its threads the predicate is not zero.",
)
block_fence = _primitive(
    "block_fence",
    "simt.block.mem_fence",
    "What this thread wrote before is seen by its block before what it writes later.",
)
grid_fence = _primitive(
    "grid_fence",
    "simt.grid.mem_fence",
    "What this thread wrote before is seen by the device before what it writes later.",
)
thread_idx = _primitive("thread_idx", "simt.block.thread_idx", "The thread's number in its block.")
block_threads = _primitive("block_threads", "simt.block.block_threads", "How many threads a block has; a constant.")
subgroup_sync = _primitive(
    "subgroup_sync",
    "simt.subgroup.sync",
    "All lanes of the subgroup wait for each other, and see what each other wrote.",
)
ballot = _primitive(
    "ballot",
    "simt.subgroup.ballot",
    "On which lanes of the subgroup the predicate is not zero: a bit for each, as ``u64``.",
)
shuffle = _primitive("shuffle", "simt.subgroup.shuffle", "What ``value`` is on another lane, by its number.")
shuffle_up = _primitive(
    "shuffle_up",
    "simt.subgroup.shuffle_up",
    "What ``value`` is on the lane so many below; the own where there is none.",
)
shuffle_down = _primitive(
    "shuffle_down",
    "simt.subgroup.shuffle_down",
    "What ``value`` is on the lane so many above; the own where there is none.",
)
shuffle_xor = _primitive(
    "shuffle_xor",
    "simt.subgroup.shuffle_xor",
    "What ``value`` is on the lane whose number differs in the bits of ``mask``.",
)
greatest_of = _primitive(
    "greatest_of", "simt.greatest_of", "The greatest number of the type of ``x``; of a real's, infinity."
)
least_of = _primitive(
    "least_of", "simt.least_of", "The least number of the type of ``x``; of a real's, minus infinity."
)
