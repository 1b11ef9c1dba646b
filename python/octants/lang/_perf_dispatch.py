"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .._session.perf_dispatch import perf_dispatch

__all__ = ["perf_dispatch"]
