"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .._fields.builder import root
from .._fields.making import field
from .._language import grouped, static, static_assert, static_print
from .._ndarrays import ndarray
from .._peer import PyQuadrants, current_cfg, get_runtime
from .._session import reset

__all__ = [
    "PyQuadrants",
    "current_cfg",
    "field",
    "get_runtime",
    "grouped",
    "ndarray",
    "reset",
    "root",
    "static",
    "static_assert",
    "static_print",
]
