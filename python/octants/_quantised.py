# type: ignore  (in the kernel language annotations are values)
"""Elements of quantised fields in kernels, written in the kernel language.

Such a field has no memory of its own: its elements are bits of *words*, the elements of an ordinary field of unsigned integers. The compiler
calls ``METHODS`` where an element is read, written, added to, or where a loop runs over the field; the first parameter is the field
(``_fields.quantised``), the second the index. What the bits mean is known when a kernel is compiled.

A word may hold elements of several threads. So a write replaces its bits by compare-and-swap, and the others keep theirs.
"""

from __future__ import annotations

from . import _language as lang
from ._pyfunc import pyfunc
from .types import Template, i64

METHODS: dict = {}


def _method(function):
    METHODS[function.__name__] = pyfunc(function)
    return METHODS[function.__name__]


@pyfunc
def _cell(self: Template, at):
    """The index of the word that has the element."""
    if lang.static(self._extents is None):
        return at
    return at // self._extents


@pyfunc
def _above(self: Template, at):
    """How many bits of the word are above the element's."""
    if lang.static(self._extents is None):
        return lang.cast(self._bits_above, self._word)
    within = at % self._extents
    number = within[0]
    for axis in lang.static(range(1, self._rank)):
        number = number * self._extents[axis] + within[axis]
    return lang.cast(self._word_bits - self._bits - self._bits * number, self._word)


@pyfunc
def _mask(self: Template):
    """The element's bits, if they were the lowest."""
    return ~lang.cast(0, self._word) >> (self._word_bits - self._bits)


@pyfunc
def _decoded(self: Template, bits):
    """The number that the topmost bits of a word are."""
    down = self._word_bits - self._bits
    if lang.static(self._signed):
        return _in_steps(self, lang.bit_cast(bits, self._signed_word) >> down)
    return _in_steps(self, bits >> down)


@pyfunc
def _in_steps(self: Template, number):
    if lang.static(self._scale is None):
        return lang.cast(number, self._compute)
    return lang.cast(number, self._compute) * lang.cast(self._scale, self._compute)


@pyfunc
def _encoded(self: Template, value):
    """The lowest bits of a word for a number: integers wrap around, multiples of the scale are rounded and clamped."""
    number = lang.cast(0, i64)
    if lang.static(self._scale is None):
        number = lang.cast(lang.cast(value, self._compute), i64)
    else:
        steps = lang.round(lang.cast(value, self._compute) / lang.cast(self._scale, self._compute))
        number = lang.min(lang.max(lang.cast(steps, i64), i64(self._least)), i64(self._greatest))
    return lang.cast(number, self._word) & _mask(self)


@_method
def load(self: Template, at):
    return _decoded(self, self._words[_cell(self, at)] << _above(self, at))


@_method
def store(self: Template, at, value):
    cell = _cell(self, at)
    shift = lang.cast(self._word_bits - self._bits, self._word) - _above(self, at)
    others = ~(_mask(self) << shift)
    bits = _encoded(self, value) << shift
    old = self._words[cell]
    is_done = False
    while not is_done:
        seen = lang.atomic_cas(self._words[cell], old, (old & others) | bits)
        is_done = seen == old
        old = seen


@_method
def add(self: Template, at, value):
    """As one indivisible step; gives the number that was there."""
    cell = _cell(self, at)
    above = _above(self, at)
    shift = lang.cast(self._word_bits - self._bits, self._word) - above
    others = ~(_mask(self) << shift)
    old = self._words[cell]
    is_done = False
    while not is_done:
        added = _decoded(self, old << above) + lang.cast(value, self._compute)
        seen = lang.atomic_cas(self._words[cell], old, (old & others) | (_encoded(self, added) << shift))
        is_done = seen == old
        if not is_done:
            old = seen
    return _decoded(self, old << above)


@_method
def cells(self: Template):
    return lang.ndrange(*self._bounds)
