"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from ._matrix.decompositions import eig, make_spd, polar_decompose, solve, svd, sym_eig
from ._random import randn

__all__ = ["eig", "make_spd", "polar_decompose", "randn", "solve", "svd", "sym_eig"]
