"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .._fields.builder import FieldsBuilder
from . import fields_builder, snode_tree

__all__ = ["FieldsBuilder", "fields_builder", "snode_tree"]
