"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from . import (
    _ndarray,
    _template_mapper,
    buffer_view,
    exception,
    field,
    impl,
    kernel_impl,
    matrix,
    misc,
    ops,
    snode,
    struct,
    util,
)

__all__ = [
    "_ndarray",
    "_template_mapper",
    "buffer_view",
    "exception",
    "field",
    "impl",
    "kernel_impl",
    "matrix",
    "misc",
    "ops",
    "snode",
    "struct",
    "util",
]
