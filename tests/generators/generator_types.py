"""Types of generated programs, and where numpy's rules for them differ from those of the language."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

INTEGERS = {
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
}  # fmt: skip
REALS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
SCALARS = INTEGERS | REALS | {"u1": np.bool_}


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


@dataclass(frozen=True)
class StructType:
    """A class of the program: its members with their types."""

    name: str
    members: tuple[tuple[str, str | Tensor | StructType], ...]

    def leaves(self, path: str) -> list[tuple[str | Tensor, str]]:
        """The members that are no structs, as they are reached from a variable."""
        found = []
        for name, type_ in self.members:
            place = f"{path}.{name}"
            found += type_.leaves(place) if isinstance(type_, StructType) else [(type_, place)]
        return found


def scalar_of(type_: str | Tensor) -> str:
    return type_.scalar if isinstance(type_, Tensor) else type_


def annotation(type_: str | Tensor | StructType) -> str:
    """The type in the program's text."""
    if isinstance(type_, StructType):
        return type_.name
    if isinstance(type_, Tensor):
        maker = "matrix" if type_.m else "vector"
        return f"oc.types.{maker}({', '.join(map(str, type_.shape))}, oc.{type_.scalar})"
    return f"oc.{type_}"
