"""Annotations, under the name that programs for Quadrants import them by."""

from . import Ref as ref
from . import Template, sparse_matrix_builder, template

__all__ = ["Template", "ref", "sparse_matrix_builder", "template"]
