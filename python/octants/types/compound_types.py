"""Types made of others, under the name that programs for Quadrants import them by."""

from . import matrix, struct, vector

__all__ = ["matrix", "struct", "vector"]
