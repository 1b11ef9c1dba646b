# type: ignore  (in the kernel language annotations are values)
"""Elements of quantised fields in kernels, written in the kernel language.

Such a field has no memory of its own: its elements are bits of *words*, the elements of an ordinary field of unsigned integers. The compiler
calls ``METHODS`` where an element is read, written, added to, or where a loop runs over the field; the first parameter is the field
(``quantised``), the second the index. What the bits mean is known when a kernel is compiled.

A word may hold elements of several threads. So a write replaces its bits by compare-and-swap, and the others keep theirs. A write of all that a
word holds is a plain store.

Words are calculated with in *registers* of 32 or 64 bits. ``low`` is the number of an element's lowest bit.
"""

from __future__ import annotations

from .. import _language as lang
from .._language.pyfunc import pyfunc
from .._matrix import Vector
from ..types import Template, i32, i64

METHODS: dict = {}


def _method(function):
    METHODS[function.__name__] = pyfunc(function)
    return METHODS[function.__name__]


# ---- where an element is --------------------------------------------------------------------------------------------------


@pyfunc
def _cell(self: Template, at):
    """The index of the word that has the element."""
    if lang.static(self._extents is None):
        return at
    return _from_zero(self, at) // self._extents


@pyfunc
def _from_zero(self: Template, at):
    """An index of a ``quant_array``, whose words begin at 0."""
    if lang.static(self._first_index is None):
        return at
    return at - self._first_index


@pyfunc
def _low(self: Template, at):
    if lang.static(self._extents is None):
        return lang.cast(self._lowest, self._register)
    within = _from_zero(self, at) % self._extents
    number = within[0]
    for axis in lang.static(range(1, self._rank)):
        number = number * self._extents[axis] + within[axis]
    return lang.cast(number * self._bits, self._register)


@pyfunc
def _ones(self: Template, count: Template):
    """So many bits, the lowest."""
    if lang.static(count == 0):
        return lang.cast(0, self._register)
    return ~lang.cast(0, self._register) >> (self._register_bits - count)


@pyfunc
def _word_at(self: Template, cell):
    return lang.cast(self._words[cell], self._register)


# ---- from bits to numbers, and back ---------------------------------------------------------------------------------------


@pyfunc
def _decoded(self: Template, word, low):
    """The number in a word."""
    if lang.static(self._kind == "float"):
        return lang.cast(_float_of(self, _exponent_in(self, word, low), _fraction_in(self, word, low)), self._compute)
    number = word >> low & _ones(self, self._bits)
    if lang.static(not self._signed):
        return _in_steps(self, number)
    # No step overflows, not even for a moment: debug mode would tell the user.
    signed = lang.bit_cast(number, self._signed_register)
    if lang.static(self._bits < self._register_bits):
        highest = lang.cast(1, self._signed_register) << (self._bits - 1)
        signed = (signed ^ highest) - highest
    return _in_steps(self, signed)


@pyfunc
def _in_steps(self: Template, number):
    if lang.static(self._scale is None):
        return lang.cast(number, self._compute)
    return lang.cast(number, self._compute) * lang.cast(self._scale, self._compute)


@pyfunc
def _encoded(self: Template, value):
    """The lowest bits of a register for a number: integers wrap around; what is rounded and out of range becomes the nearest number."""
    if lang.static(self._kind == "float"):
        return _float_bits(self, lang.cast(value, self._compute))
    number = lang.cast(0, self._register)
    if lang.static(self._scale is None):
        number = lang.cast(lang.cast(value, self._compute), self._register)
    else:
        steps = lang.round(lang.cast(value, self._compute) / lang.cast(self._scale, self._compute))
        number = lang.cast(_clamped(self, steps, lang.static(i32 if self._bits < 32 else i64)), self._register)
    return number & _ones(self, self._bits)


@pyfunc
def _clamped(self: Template, steps, integer: Template):
    """The nearest number of steps in range. The cast saturates, so any integer type that has the range will do."""
    return lang.min(lang.max(lang.cast(steps, integer), integer(self._least)), integer(self._greatest))


# ---- reals with an exponent -----------------------------------------------------------------------------------------------
#
# A fraction has ``digits`` bits, and above them the sign, if there is one. An exponent of 0 means zero. Numbers are taken apart as ``real``,
# f32 or f64, of whose bits ``mantissa`` are the mantissa; ``offset_of_exponent`` is by how much its
# exponents are greater.


@pyfunc
def _exponent_in(self: Template, word, low):
    if lang.static(self._shared is None):
        return lang.cast(word >> low & _ones(self, self._exponent), i32)
    return lang.cast(word >> self._shared.lowest & _ones(self, self._exponent), i32)


@pyfunc
def _fraction_in(self: Template, word, low):
    if lang.static(self._shared is None):
        return word >> low >> self._exponent & _ones(self, self._fraction)
    return word >> low & _ones(self, self._fraction)


@pyfunc
def _float_of(self: Template, exponent, fraction):
    """The real that an exponent and a fraction are."""
    digits = lang.cast(fraction & _ones(self, self._digits), self._real_bits)
    scaled = lang.cast(0, self._real_bits)
    if lang.static(self._shared is None):
        above = lang.cast(exponent + self._offset_of_exponent, self._real_bits) << self._mantissa
        scaled = above | (digits << (self._mantissa - self._digits))
    else:
        # The highest digit counts 2 to the power of the exponent: the number of digits is scaled by adding to its own exponent.
        whole = lang.bit_cast(lang.cast(digits, self._real), self._real_bits)
        power = exponent + self._offset_of_exponent - self._bias_of_real - (self._digits - 1)
        reached = lang.cast(whole >> self._mantissa, i32) + power
        kept = lang.min(lang.max(reached, 0), (1 << self._exponent_of_real) - 1)
        moved = (whole & self._mantissa_mask) | (lang.cast(kept, self._real_bits) << self._mantissa)
        scaled = lang.select((digits == 0) | (reached <= 0), lang.cast(0, self._real_bits), moved)
    if lang.static(self._signed):
        sign = lang.cast(fraction >> self._digits, self._real_bits) << (self._mantissa + self._exponent_of_real)
        scaled = lang.select(scaled == 0, scaled, scaled | sign)
    return lang.bit_cast(lang.select(exponent == 0, lang.cast(0, self._real_bits), scaled), self._real)


@pyfunc
def _magnitude(self: Template, value):
    """The bits of a real without its sign: 0 for what becomes zero whatever its size."""
    bits = lang.bit_cast(lang.cast(value, self._real), self._real_bits)
    magnitude = bits & lang.cast(self._greatest_magnitude, self._real_bits)
    infinite = lang.cast(self._infinity, self._real_bits)
    if lang.static(self._exponent < self._exponent_of_real):
        magnitude = lang.select(magnitude > infinite, lang.cast(0, self._real_bits), magnitude)
    else:
        magnitude = lang.select(magnitude > infinite, lang.cast(self._not_a_number, self._real_bits), magnitude)
    if lang.static(not self._signed):
        magnitude = lang.select(bits > magnitude, lang.cast(0, self._real_bits), magnitude)
    return magnitude


@pyfunc
def _sign(self: Template, value):
    """The sign of a real as a bit, above the digits."""
    bits = lang.bit_cast(lang.cast(value, self._real), self._real_bits)
    sign = lang.cast(bits >> (self._mantissa + self._exponent_of_real), self._register)
    return sign << self._digits


@pyfunc
def _float_bits(self: Template, value):
    """The exponent and, above it, the fraction."""
    magnitude = _magnitude(self, value)
    if lang.static(self._digits < self._mantissa):
        magnitude = magnitude + (lang.cast(1, self._real_bits) << (self._mantissa - 1 - self._digits))
    exponent = lang.cast(magnitude >> self._mantissa, i32) - self._offset_of_exponent
    digits = lang.cast(magnitude >> (self._mantissa - self._digits), self._register) & _ones(self, self._digits)
    if lang.static(self._exponent < self._exponent_of_real):
        digits = lang.select(exponent > self._greatest_exponent, _ones(self, self._digits), digits)
        exponent = lang.min(exponent, self._greatest_exponent)
    if lang.static(self._signed):
        digits = digits | _sign(self, value)
    bits = (digits << self._exponent) | lang.cast(exponent, self._register)
    return lang.select(exponent <= 0, lang.cast(0, self._register), bits)


# ---- exponents that several fields share ----------------------------------------------------------------------------------


@pyfunc
def _exponent_for(self: Template, value):
    """The exponent that a number asks for, before it is rounded."""
    return lang.cast(_magnitude(self, value) >> self._mantissa, i32) - self._offset_of_exponent


@pyfunc
def _digits_for(self: Template, value, exponent):
    """The fraction of a number under an exponent: rounded, and clamped to the digits."""
    magnitude = _magnitude(self, value)
    own = lang.cast(magnitude >> self._mantissa, i32)
    whole = (magnitude & self._mantissa_mask) | (lang.cast(1, self._real_bits) << self._mantissa)
    down = lang.cast(self._mantissa + 1 - self._digits, i32) + exponent + self._offset_of_exponent - own
    # Beyond the mantissa's bits nothing is left, and shifts by more than a register has bits mean something else.
    moved = lang.cast(lang.min(lang.max(down, 0), self._mantissa + 2), self._real_bits)
    half = (lang.cast(1, self._real_bits) << moved) >> 1
    digits = lang.cast((whole + half) >> moved, self._register)
    digits = lang.min(digits, _ones(self, self._digits))
    digits = lang.select(own - self._offset_of_exponent > exponent, _ones(self, self._digits), digits)
    digits = lang.select((own == 0) | (exponent == 0), lang.cast(0, self._register), digits)
    if lang.static(self._signed):
        digits = lang.select(digits == 0, digits, digits | _sign(self, value))
    return digits


@pyfunc
def _shared_bits(self: Template, old, fields: Template, values: Template):
    """The word with numbers of fields that share an exponent; those that are not given are as they were."""
    members = lang.static(self._shared.fields)
    numbers = Vector(
        [
            _given(members[k], old, fields, values, lang.static(_position(fields, members[k])))
            for k in lang.static(range(len(members)))
        ]
    )
    exponent = 0
    for k in lang.static(range(len(members))):
        exponent = lang.max(exponent, _exponent_for(members[k], numbers[k]))
    exponent = lang.min(exponent, self._greatest_exponent)
    new = old & ~(_ones(self, self._exponent) << self._shared.lowest)
    new = new | (lang.cast(exponent, self._register) << self._shared.lowest)
    for k in lang.static(range(len(members))):
        new = new & ~(_ones(members[k], members[k]._fraction) << members[k]._lowest)
        new = new | (_digits_for(members[k], numbers[k], exponent) << members[k]._lowest)
    return new


@pyfunc
def _given(self: Template, old, fields: Template, values: Template, position: Template):
    if lang.static(position is None):
        return lang.cast(_decoded(self, old, lang.cast(self._lowest, self._register)), self._real)
    return lang.cast(lang.cast(values[position], self._compute), self._real)


def _position(fields, wanted):
    """Which of the fields it is; ``None`` if none of them."""
    return next((at for at, field in enumerate(fields) if field is wanted), None)


def _is_first_of_group(fields, at):
    """Whether no field before it shares its exponent."""
    return all(field._shared is not fields[at]._shared for field in fields[:at])


# ---- what the compiler calls ----------------------------------------------------------------------------------------------


@_method
def load(self: Template, at):
    return _decoded(self, _word_at(self, _cell(self, at)), _low(self, at))


@pyfunc
def _replaced(self: Template, old, at, fields: Template, values: Template):
    """The word with the numbers of some fields."""
    new = old
    for k in lang.static(range(len(fields))):
        if lang.static(fields[k]._shared is None):
            low = _low(fields[k], at)
            bits = _encoded(fields[k], values[k])
            new = (new & ~(_ones(fields[k], fields[k]._bits) << low)) | (bits << low)
        elif lang.static(_is_first_of_group(fields, k)):
            new = _shared_bits(fields[k], new, fields, values)
    return new


def _fill_the_word(fields):
    """Whether the fields are all that their word holds."""
    return fields[0]._extents is None and len(fields) == fields[0]._neighbours


@_method
def store(self: Template, at, fields: Template, values: Template):
    """Sets the elements at one index of several fields, whose words are the same."""
    cell = _cell(self, at)
    if lang.static(_fill_the_word(fields)):
        new = _replaced(self, lang.cast(0, self._register), at, fields, values)
        self._words[cell] = lang.cast(new, self._word)
    else:
        old = self._words[cell]
        is_done = False
        while not is_done:
            new = lang.cast(_replaced(self, lang.cast(old, self._register), at, fields, values), self._word)
            if lang.static(self._extents is not None and not self._is_sparse):
                # Elements of one field often stay as they are, and looking is cheaper than an atomic write, which makes cells, too.
                is_done = new == old
            if not is_done:
                seen = lang.atomic_cas_word(self._words[cell], old, new)
                is_done = seen == old
                old = seen


@_method
def add(self: Template, at, value):
    """As one indivisible step; gives the number that was there."""
    cell = _cell(self, at)
    low = _low(self, at)
    old = self._words[cell]
    is_done = False
    while not is_done:
        added = _decoded(self, lang.cast(old, self._register), low) + lang.cast(value, self._compute)
        new = _replaced(self, lang.cast(old, self._register), at, (self,), (added,))
        seen = lang.atomic_cas_word(self._words[cell], old, lang.cast(new, self._word))
        is_done = seen == old
        if not is_done:
            old = seen
    return _decoded(self, lang.cast(old, self._register), low)


@_method
def cells(self: Template):
    """What a loop over the field runs over."""
    is_whole = lang.static(self._words is not None and (self._extents is None or self._is_sparse))
    if lang.static(is_whole and self._first_index is None):
        # The compiler visits all elements of a word that is there.
        return self._words
    return lang.ndrange(*self._bounds)
