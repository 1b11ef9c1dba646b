"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .._session import sync

__all__ = ["sync"]
