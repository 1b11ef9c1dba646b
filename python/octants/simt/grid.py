# type: ignore  (in the kernel language annotations are values, and what is static decides the types)
"""What all threads of a launch have to do with each other. There is no barrier of all threads: the end of a loop is one."""

from __future__ import annotations

import warnings

from .._language import static
from .._session import func
from ._primitives import grid_fence as mem_fence

__all__ = ["mem_fence", "memfence"]


@func
def memfence():
    """The old name of ``mem_fence``."""
    static(warnings.warn("simt.grid.memfence() is deprecated: use simt.grid.mem_fence()", DeprecationWarning, 2))
    mem_fence()
