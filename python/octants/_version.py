"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from ._octants import __version__

__all__ = ["__version__"]
