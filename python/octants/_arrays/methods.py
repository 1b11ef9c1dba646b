# type: ignore  (in the kernel language annotations are values)
"""Methods of fields and arrays in kernels, written in the kernel language.

``METHODS`` maps a name to a function whose first parameter is the field, array or view. The compiler compiles it into the caller: at the
top level of a kernel its loop runs in parallel, elsewhere in order.
"""

from __future__ import annotations

from .. import _language as lang
from .._language.pyfunc import pyfunc
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
