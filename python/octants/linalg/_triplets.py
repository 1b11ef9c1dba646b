# type: ignore  (in the kernel language annotations are values)
"""What ``A[i, j] += v`` does in a kernel, if ``A`` is a ``SparseMatrixBuilder``: it appends a triplet. Written in the kernel language.

The compiler calls ``METHODS``, as for quantised fields. There is only one for adding, so that all else is refused.
"""

from __future__ import annotations

from .. import _language as lang
from .._language.pyfunc import pyfunc
from ..types import Template, i32


@pyfunc
def add(self: Template, at, value):
    """Appends a triplet. Those that there is no place for are counted alone, in 64 bits, which do not wrap: ``build`` tells of them."""
    count = lang.atomic_add(self._count[0], 1)
    if count < self.max_num_triplets:
        number = lang.cast(count, i32)
        self._rows[number] = at[0]
        self._columns[number] = at[1]
        self._values[number] = value
    return value


METHODS = {"add": add}
