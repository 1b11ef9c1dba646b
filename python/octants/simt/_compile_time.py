"""What is refused while a kernel that uses tiles is compiled."""

from __future__ import annotations

from ..exceptions import OctantsTypeError


def refuse_upper(size: int) -> None:
    """Refuses upper triangles."""
    raise OctantsTypeError(f"Tile{size}x{size}.solve_triangular_ solves with lower triangles only: lower=True")


def refuse_type(size: int, dtype) -> None:
    """Refuses types of elements that tiles do not have."""
    raise OctantsTypeError(f"tiles are of f32 or f64, not {dtype}: Tile{size}x{size}.zeros(dtype=oc.f32)")
