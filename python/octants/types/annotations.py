"""Annotations, under the name that programs for Quadrants import them by."""

from . import Ref as ref
from . import Template, template

__all__ = ["Template", "ref", "template"]
