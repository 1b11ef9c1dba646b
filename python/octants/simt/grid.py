# type: ignore  (in the kernel language annotations are values, and what is static decides the types)
"""What all threads of a launch have to do with each other. There is no barrier of all threads: the end of a loop is one."""

from __future__ import annotations

from .._language import deprecated
from .._session import func
from ._primitives import grid_fence as mem_fence

__all__ = ["mem_fence", "memfence"]


@func
def memfence():
    """The old name of ``mem_fence``."""
    deprecated("simt.grid.memfence", "simt.grid.mem_fence")
    mem_fence()
