"""Old names of what is no longer an experiment."""

from __future__ import annotations

import warnings

from . import _session


def real_func(fn=None):
    """Deprecated: the name is ``oc.real_func``."""
    warnings.warn("oc.experimental.real_func is deprecated; use oc.real_func", DeprecationWarning, stacklevel=2)
    return _session.real_func(fn)


__all__ = ["real_func"]
