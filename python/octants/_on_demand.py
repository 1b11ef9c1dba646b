"""Modules of a package that are imported when they are first asked for."""

from __future__ import annotations

import importlib
from types import ModuleType


def module(package: str, name: str, modules: tuple[str, ...], planned: str | None = None) -> ModuleType:
    """What ``__getattr__`` of a package gives: one of these modules. Of a name that is not built yet, ``planned`` says what to use meanwhile."""
    if name in modules:
        return importlib.import_module(f".{name}", package)
    from ._peer.not_yet import message

    raise AttributeError((planned and message(planned)) or f"module {package!r} has no attribute {name!r}")
