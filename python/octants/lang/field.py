"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .._fields.field import Field
from .._fields.quantised import BitpackedFields
from .._fields.scalar import ScalarField

__all__ = ["BitpackedFields", "Field", "ScalarField"]
