"""Numbers that the host has read of arrays with derivatives, and launches that were given them again: what went through the host is a constant there.

Owns what was read. A number is known again by its value; what the host has computed with it is another number, and not known.
"""

from __future__ import annotations

from .._fields.field import Field, user_line
from .._matrix.struct import Struct
from .._octants import Ndarray, refusal
from .arrays import name_of, numbers_of

TYPE_CHECKING = False  # as `typing` says it, without its weight
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

#: Elements of an array whose numbers are known again, and digits of such a number: one of fewer may be a constant of the program that happens to be the same.
#: Chosen, not measured.
_MANY, _DIGITS = 4096, 7


class Passed:
    """A launch was given a number of an array."""

    def __init__(self, array, name: str, read_at: str, kernel: str):
        self.array, self.name, self.read_at, self.kernel = array, name, read_at, kernel
        self.line = user_line()

    def refused(self, lost: str) -> Exception:
        """What says so."""
        return refusal(
            "OC1105",
            f"`{self.kernel}`, called at {self.line}, takes a number that the host has read of {self.name}, at {self.read_at}: what the host hands on is a constant, and {lost}",
            "hand the array on, and read it in the kernel; or read it before, or in a function that oc.ad.no_grad decorates, to take the number as a constant",
        )


class Looks:
    """What the host has read since derivatives are recorded."""

    def __init__(self):
        self._found: dict[float, tuple] = {}
        #: Of each array: how far the log was when it was read last.
        self._known: dict[int, int] = {}
        self._is_noting = False

    def note(self, array, entries: int) -> None:
        """The host looks at an array, with the log at so many entries."""
        if self._is_noting or self._known.get(id(array)) == entries:
            return
        if not isinstance(array, (Field, Ndarray)) or _size(array) > _MANY:
            return
        self._known[id(array)] = entries
        self._is_noting = True
        try:
            numbers = numbers_of(array)
        finally:
            self._is_noting = False
        if numbers.dtype.kind == "f":
            where = array, name_of(array), user_line()
            self._found.update((number, where) for number in numbers.ravel().tolist() if _is_long(number))

    def __bool__(self) -> bool:
        return bool(self._found)

    def passed(self, taken: list) -> Iterator[Passed]:
        """The numbers among what launches took, one for each array."""
        seen = set()
        for kernel, values in taken:
            for number in (number for _, value in values for number in _reals(value)):
                found = self._found.get(number)
                if found is not None and id(found[0]) not in seen:
                    array, name, read_at = found
                    seen.add(id(array))
                    yield Passed(array, name, read_at, kernel)


def _size(array) -> int:
    count = 1
    for extent in (*array.shape, *getattr(array, "element_shape", ())):
        count *= extent
    return count


def _is_long(number: float) -> bool:
    digits = repr(number).partition("e")[0].replace(".", "").strip("-0")
    return len(digits) >= _DIGITS and digits.isdigit()


def _reals(value: Any) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _reals(one)
    elif isinstance(value, (Struct, dict)):
        yield from _reals(list((value.entries if isinstance(value, Struct) else value).values()))
    elif not isinstance(value, (Field, Ndarray)):
        numbers: Any = value.to_numpy() if hasattr(value, "to_numpy") else value
        if getattr(getattr(numbers, "dtype", None), "kind", "") == "f" and numbers.size <= _MANY:
            yield from numbers.ravel().tolist()
