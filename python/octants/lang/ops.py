"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .._language import *  # noqa: F403
from .._language.frexp import frexp
from ..math import clz, ffs, popcnt

__all__ = ["clz", "ffs", "frexp", "popcnt"]  # and what `*` brings
