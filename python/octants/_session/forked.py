"""Imports in forked children."""

from __future__ import annotations

import importlib
import sys
import threading


def forget_imports_of_parent() -> None:
    """To be called first in a forked child: modules of this package that another thread of the parent was importing are imported anew by whoever asks.

    That thread is not in the child, where whoever asks would wait for it for ever. Nobody else has a part of such a module: what imports it is in the
    making itself.
    """
    locks = getattr(importlib._bootstrap, "_module_locks", {})  # type: ignore[attr-defined]
    package, own = __name__.partition(".")[0], threading.get_ident()
    for name, lock in list(locks.items()):
        owner = getattr(lock(), "owner", None)
        if owner not in (None, own) and name.partition(".")[0] == package:
            sys.modules.pop(name, None)
            locks.pop(name, None)
