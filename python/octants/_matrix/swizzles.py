"""Components of vectors by letters: ``v.x``, ``v.zyx``, ``v.rgb``.

They stand in the class, each with the positions that it names: with a ``__getattr__`` Python would look up every other attribute the slow way.
"""

from __future__ import annotations

from itertools import product

#: Letters of components; a name takes all of its letters from one of these.
SWIZZLES = ("xyzw", "rgba", "stpq")


def component(position: int, letters: str) -> property:
    """One entry of a vector."""

    def get(self):
        entries = self.entries
        return (
            entries[position]
            if entries.ndim == 1 and position < len(entries)
            else self._refuse(letters[position], letters)
        )

    return property(get)


class Swizzle:
    """Several entries of a vector as another one."""

    __slots__ = ("letters", "name", "positions")

    def __init__(self, name: str, letters: str):
        self.name, self.letters, self.positions = name, letters, None

    def __get__(self, vector, _=None):
        if vector is None:
            return self
        if self.positions is None:
            self.positions = [self.letters.index(letter) for letter in self.name]
        return vector._swizzled(self)


def swizzle_properties() -> dict[str, object]:
    """What a class of vectors has by these names."""
    found: dict[str, object] = {}
    for letters in SWIZZLES:
        found.update((letter, component(position, letters)) for position, letter in enumerate(letters))
        for length in (2, 3, 4):
            found.update((name, Swizzle(name, letters)) for name in map("".join, product(letters, repeat=length)))
    return found
