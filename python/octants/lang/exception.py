"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from ..exceptions import *  # noqa: F403
from ..exceptions import (
    QuadrantsAssertionError,
    QuadrantsCompilationError,
    QuadrantsIndexError,
    QuadrantsNameError,
    QuadrantsRuntimeError,
    QuadrantsRuntimeTypeError,
    QuadrantsSyntaxError,
    QuadrantsTypeError,
    __getattr__,  # noqa: F401
)

__all__ = [
    "QuadrantsAssertionError", "QuadrantsCompilationError", "QuadrantsIndexError", "QuadrantsNameError", "QuadrantsRuntimeError",
    "QuadrantsRuntimeTypeError", "QuadrantsSyntaxError", "QuadrantsTypeError",
]  # fmt: skip
