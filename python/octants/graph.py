"""Graphs of kernels. On the CPU a kernel with ``graph=True`` runs as any other; loops of graphs are not there yet.

On the host ``parallel_context`` and ``parallel`` are context managers that do nothing.
"""

from __future__ import annotations

from contextlib import nullcontext

from ._peer.not_yet import Unbuilt


def parallel_context() -> nullcontext:
    """Around sections that may run at once. Does nothing on the host."""
    return nullcontext()


def parallel() -> nullcontext:
    """A section that may run beside others. Does nothing on the host."""
    return nullcontext()


do_while = Unbuilt("graph.do_while", "use a Python loop around the kernels")
