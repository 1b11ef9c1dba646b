"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .. import _session
from .._fields import making
from . import (
    _fast_caching,
    _ndarray,
    _ndrange,
    _perf_dispatch,
    _template_mapper,
    buffer_view,
    exception,
    expr,
    field,
    func,
    graph,
    impl,
    intrinsics,
    kernel,
    kernel_impl,
    matrix,
    misc,
    ops,
    runtime_ops,
    simt,
    snode,
    stream,
    struct,
    util,
)

# There are modules of these names, but in the package they mean what is public: `lang.kernel` is the decorator.
globals().update(field=making.field, func=_session.func, kernel=_session.kernel)

__all__ = [
    "_fast_caching",
    "_ndarray",
    "_ndrange",
    "_perf_dispatch",
    "_template_mapper",
    "buffer_view",
    "exception",
    "expr",
    "field",
    "func",
    "graph",
    "impl",
    "intrinsics",
    "kernel",
    "kernel_impl",
    "matrix",
    "misc",
    "ops",
    "runtime_ops",
    "simt",
    "snode",
    "stream",
    "struct",
    "util",
]


def __getattr__(name: str):
    # What is public in the package, Quadrants has here, too.
    import octants

    if not name.startswith("_") and hasattr(octants, name):
        return getattr(octants, name)
    from .._peer.not_yet import message

    raise AttributeError(message(name) or message(f"lang.{name}") or f"module {__name__!r} has no attribute {name!r}")
