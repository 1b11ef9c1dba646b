"""Octants under the name of a peer: ``import quadrants`` gives Octants, ``import quadrants.lang.impl`` gives ``octants.lang.impl``.

Knows names and Python's import system, and nothing of what the modules hold.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec

from .not_yet import message

#: The systems that Octants has the names of.
PEERS = ("quadrants", "taichi")


class _Names:
    """Finds modules of a peer: ours of the same name. A finder and a loader, as Python's import system calls them."""

    def __init__(self, peer: str):
        self.peer = peer

    def ours(self, name: str) -> str:
        """The name that a module of the peer has here."""
        return "octants" + name[len(self.peer) :]

    def find_spec(self, name: str, path=None, target=None) -> ModuleSpec | None:
        if name.startswith("octants.") and (why := _why(name)):
            # `from quadrants import ui` asks for octants.ui, and goes on to a message of its own unless the name is another.
            raise ModuleNotFoundError(why, name=name.replace("octants", self.peer, 1))
        if not name.startswith(f"{self.peer}."):
            return None
        import importlib.util

        ours = self.ours(name)
        try:
            found = importlib.util.find_spec(ours)
        except ModuleNotFoundError:
            found = None
        if found is None:
            why = _why(ours) or f"Octants stands in for {self.peer}, and has no {ours}"
            raise ModuleNotFoundError(f"No module named {name!r}: {why}", name=name)
        return ModuleSpec(name, self, is_package=found.submodule_search_locations is not None)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Nothing: the module that Python makes is replaced by ours, which must keep its own spec."""

    def exec_module(self, module) -> None:
        name = module.__spec__.name
        ours = self.ours(name)
        sys.modules[name] = importlib.import_module(ours)
        # What ours has imported inside is not imported again, which would bind a module's name in the package: `lang.kernel` is the decorator.
        for inner in [inner for inner in sys.modules if inner.startswith(f"{ours}.")]:
            sys.modules.setdefault(self.peer + inner.removeprefix("octants"), sys.modules[inner])


def _why(ours: str) -> str | None:
    """What is said of a module that is not there yet, or of the package that it belongs to."""
    parts = ours.split(".")[1:]
    said = (message(".".join(parts[:length])) for length in range(len(parts), 0, -1))
    return next((text for text in said if text), None)


def install_as(peer: str) -> None:
    """Lets every ``import`` of a peer ("quadrants" or "taichi") that comes after it find Octants, deep ones too.

    >>> import octants
    >>> octants.install_as("quadrants")
    >>> import quadrants as qd
    """
    if peer not in PEERS:
        raise ValueError(f"install_as takes {' or '.join(map(repr, PEERS))}, not {peer!r}")
    ours = sys.modules["octants"]
    there = sys.modules.get(peer)
    if there is ours:
        return
    imported = next((name for name in sys.modules if name == peer or name.startswith(f"{peer}.")), None)
    if imported is not None:
        raise RuntimeError(
            f"{imported} is imported already: call octants.install_as({peer!r}) before anything imports {peer}"
        )
    sys.meta_path.insert(0, _Names(peer))  # type: ignore[arg-type]
    sys.modules[peer] = ours
    _tell_children(peer)


class _InChild:
    """Installs the names where it is unpickled."""

    def __init__(self, peer: str):
        self.peer = peer

    def __reduce__(self):
        return install_as, (self.peer,)


def _tell_children(peer: str) -> None:
    """Lets processes that ``multiprocessing`` starts anew, not as a copy of this one, install the names before they import the program."""
    from multiprocessing import spawn

    prepare = spawn.get_preparation_data

    def with_names(name):
        # A child unpickles this before it looks for the program's modules.
        return {**prepare(name), f"octants_as_{peer}": _InChild(peer)}

    spawn.get_preparation_data = with_names
