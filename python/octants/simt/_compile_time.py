"""What is decided and refused while a kernel that uses blocks or tiles is compiled."""

from __future__ import annotations

from .._primitive_types import i32
from ..exceptions import OctantsCompilationError, OctantsTypeError


def refuse_cpu(size: int) -> None:
    """Refuses tiles where the session has no blocks."""
    raise OctantsCompilationError(f"oc.simt.Tile{size}x{size} requires a GPU backend with oc.init(simt_on_cpu=False)")


def is_scalar_type(dtype) -> bool:
    """Whether it is a type of numbers, and not of vectors or matrices."""
    return isinstance(dtype, type(i32))


def refuse_upper(size: int) -> None:
    """Refuses upper triangles."""
    raise OctantsTypeError(f"Tile{size}x{size}.solve_triangular_ solves with lower triangles only: lower=True")


def refuse_type(size: int, dtype) -> None:
    """Refuses types of elements that tiles do not have."""
    raise OctantsTypeError(f"tiles are of f32 or f64, not {dtype}: Tile{size}x{size}.zeros(dtype=oc.f32)")
