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


def __getattr__(name: str):
    # What is public in the package, Quadrants has here, too.
    import octants

    if not name.startswith("_") and hasattr(octants, name):
        return getattr(octants, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
