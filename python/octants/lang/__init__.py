"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from . import exception, field, impl, kernel_impl, matrix, misc, ops, snode, struct, util

__all__ = ["exception", "field", "impl", "kernel_impl", "matrix", "misc", "ops", "snode", "struct", "util"]
