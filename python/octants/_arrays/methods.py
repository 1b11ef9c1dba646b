# type: ignore  (in the kernel language annotations are values)
"""Methods of fields and arrays in kernels, written in the kernel language.

``METHODS`` maps a name to a function whose first parameter is the field, array or view. The compiler compiles it into the caller: at the
top level of a kernel its loop runs in parallel, elsewhere in order.
"""

from __future__ import annotations

from .. import _language as lang
from .._language.pyfunc import pyfunc
from .._language.threads import invocation_id
from ..types import Template

METHODS: dict = {}


def _method(function):
    METHODS[function.__name__] = pyfunc(function)
    return function


@_method
def fill(self: Template, val: Template):
    """Sets every element to ``val``, which has the type of the elements."""
    for index in lang.grouped(self):
        self[index] = val


@_method
def column(self: Template, batch: Template, row, rows, at, columns):
    """``self[row : row + rows, at]``, or ``self[batch, ...]``: an entry on each lane, and 0 where there is none. ``columns`` says whether there is one at all."""
    lane = invocation_id()
    entry = lang.cast(0, lang.static(self.dtype))
    if lane < rows and columns > 0:
        if lang.static(batch is None):
            entry = self[row + lane, at]
        else:
            entry = self[batch, row + lane, at]
    return entry
