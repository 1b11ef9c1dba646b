"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from ._language.normal import randn
from ._matrix.decompositions import eig, make_spd, polar_decompose, solve, svd, sym_eig

__all__ = ["eig", "make_spd", "polar_decompose", "randn", "solve", "svd", "sym_eig"]
