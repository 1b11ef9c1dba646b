"""Marks functions that mean the same on the host and in kernels.

The mark is the attribute ``__octants__ = "func"`` of a plain function. Called from Python, the function runs as Python, at no
extra cost; called from a kernel, the compiler finds the mark and compiles the body into the caller, as for ``@oc.func``. Methods
work too: a bound method shows the mark of its function.
"""

from __future__ import annotations


def pyfunc(fn):
    """Marks a function that may be called from ordinary Python and from kernels.

    Its body must be written in the kernel language: what it does is what Python does with it.
    """
    if not hasattr(fn, "__code__"):
        from ..exceptions import OctantsSyntaxError

        raise OctantsSyntaxError(f"@oc.pyfunc decorates a function, not {type(fn).__name__}")
    fn.__octants__ = "func"
    return fn
