"""What is asked while a kernel that uses blocks or tiles is compiled."""

from __future__ import annotations

from ..exceptions import OctantsTypeError


def require_lower(lower: bool, size: int) -> None:
    """Refuses upper triangles."""
    if not lower:
        raise OctantsTypeError(f"Tile{size}x{size}.solve_triangular_ solves with lower triangles only: lower=True")
