"""Types of generated programs, and where numpy's rules for them differ from those of the language."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

INTEGERS = {
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
}  # fmt: skip
REALS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
SCALARS = INTEGERS | REALS


@dataclass(frozen=True)
class Tensor:
    """The type of a vector (``m`` is 0) or of a matrix."""

    scalar: str
    n: int
    m: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.n, self.m) if self.m else (self.n,)


def width(scalar: str) -> int:
    return int(scalar[1:])


def promoted(a: str, b: str) -> str:
    """Reals beat integers, then the wider type wins, then the unsigned one."""
    return max(a, b, key=lambda t: (t[0] == "f", width(t), t[0] == "u"))


def numpy_agrees(a: str, b: str) -> bool:
    """Whether numpy too meets two types in ``promoted(a, b)``."""
    return np.result_type(SCALARS[a], SCALARS[b]) == SCALARS[promoted(a, b)]


def operands_of(result: str, palette: list[str]) -> list[tuple[str, str]]:
    """The pairs of types that meet in a type."""
    return [(a, b) for a in palette for b in palette if promoted(a, b) == result]


class HostArray:
    """An array as kernels see it: elements may be vectors, a loop goes over its indices."""

    def __init__(self, data: np.ndarray, element: str | Tensor):
        self.data, self.element = data, element
        rank = len(element.shape) if isinstance(element, Tensor) else 0
        self.shape = data.shape[: data.ndim - rank]

    @staticmethod
    def _index(index):
        return tuple(int(i) for i in index) if not isinstance(index, (int, np.integer)) else int(index)

    def __getitem__(self, index):
        value = self.data[self._index(index)]
        if not isinstance(self.element, Tensor):
            return value
        import octants as oc
        from octants._matrix import made

        # A view: an assignment to an entry of the element reaches the array.
        return made(value, getattr(oc, self.element.scalar))

    def __setitem__(self, index, value):
        self.data[self._index(index)] = np.asarray(value) if isinstance(self.element, Tensor) else value

    def __iter__(self):
        return iter(range(self.shape[0])) if len(self.shape) == 1 else iter(np.ndindex(self.shape))
