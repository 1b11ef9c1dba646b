"""What threads do together: in a block, in a subgroup, in the whole grid; and tiles, matrices in the registers of a subgroup."""

from __future__ import annotations

from . import block, grid, subgroup, warp
from ._tiles import Tile16x16, Tile32x32

__all__ = ["Tile16x16", "Tile32x32", "block", "grid", "subgroup", "warp"]
