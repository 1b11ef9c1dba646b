"""Axes that a node cuts: ``oc.i``, ``oc.ij``, …, and ``oc.axes``."""

from __future__ import annotations

from .._octants import MAX_AXES, refusal

#: Letters of the axes that have names.
LETTERS = "ijkl"


class Axes(tuple):
    """The axes that a node cuts, by their numbers."""

    __slots__ = ()

    def __repr__(self):
        if all(axis < len(LETTERS) for axis in self) and list(self) == sorted(set(self)):
            return f"oc.{''.join(LETTERS[axis] for axis in self)}"
        return f"oc.axes({', '.join(map(str, self))})"


def axes(*numbers: int) -> Axes:
    """The axes with the given numbers: ``oc.axes(0, 2)`` is ``oc.ik``."""
    for number in numbers:
        if isinstance(number, bool) or not hasattr(number, "__index__"):
            raise TypeError(f"axes have numbers, not {number!r}")
        if not 0 <= number.__index__() < MAX_AXES:
            text = f"axis {number}: axes are numbered from 0 to {MAX_AXES - 1}; a field has at most {MAX_AXES}"
            raise refusal("OC0415", text)
    return Axes(number.__index__() for number in numbers)


i = Axes((0,))
j = Axes((1,))
k = Axes((2,))
l = Axes((3,))  # noqa: E741
ij = Axes((0, 1))
ik = Axes((0, 2))
il = Axes((0, 3))
jk = Axes((1, 2))
jl = Axes((1, 3))
kl = Axes((2, 3))
ijk = Axes((0, 1, 2))
ijl = Axes((0, 1, 3))
ikl = Axes((0, 2, 3))
jkl = Axes((1, 2, 3))
ijkl = Axes((0, 1, 2, 3))
