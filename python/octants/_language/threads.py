"""Names of the language itself for what threads do together. The others are in ``octants.simt``."""

from __future__ import annotations

from . import _marked, _only_in_kernels


@_marked("global_thread_idx")
def global_thread_idx():
    """The thread's number among all of the loop."""
    raise _only_in_kernels("global_thread_idx")


@_marked("invocation_id")
def invocation_id():
    """The lane's number in its subgroup."""
    raise _only_in_kernels("simt.subgroup.invocation_id")


@_marked("outer")
def outer(a, b):
    """The product of two columns, of which each lane has an entry: ``tile -= oc.outer(a, b)``. It is taken from a tile, and nothing else is done with it."""
    raise _only_in_kernels("outer")
