"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .._fields.node import SNode
from .._fields.quantised import BitpackedFields
from .._language.fields import activate, append, deactivate, get_addr, is_active, length, rescale_index

__all__ = [
    "BitpackedFields",
    "SNode",
    "activate",
    "append",
    "deactivate",
    "get_addr",
    "is_active",
    "length",
    "rescale_index",
]
