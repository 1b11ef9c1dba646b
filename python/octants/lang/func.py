"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .._octants import Func

__all__ = ["Func"]
