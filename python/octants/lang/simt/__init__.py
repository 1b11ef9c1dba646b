"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from ...simt import Tile16x16, Tile32x32
from . import block, grid, subgroup, warp

__all__ = ["Tile16x16", "Tile32x32", "block", "grid", "subgroup", "warp"]
