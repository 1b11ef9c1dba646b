"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .._octants import Expr

__all__ = ["Expr"]
