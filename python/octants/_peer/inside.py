"""What programs for Quadrants ask of its inside: which devices it was built for, the options of the session, and its hooks."""

from __future__ import annotations

import os
import sys

from .. import _session
from .._fields.builder import materialise_root
from .._session.device import device_properties

#: Whether there are windows that a GPU draws in.
GGUI_AVAILABLE = False


class _Program:
    """The session, as programs for Quadrants see it."""

    def synchronize(self) -> None:
        """Waits until everything that was launched is done."""
        _session.sync()


class PyQuadrants:
    """The session, as programs for Quadrants see it: its options, and methods that Octants calls and programs may wrap."""

    prog = _Program()

    @property
    def default_fp(self):
        """The type of reals."""
        return None if _session.cfg is None else _session.cfg.default_fp  # type: ignore[attr-defined]

    @property
    def default_ip(self):
        """The type of integers."""
        return None if _session.cfg is None else _session.cfg.default_ip  # type: ignore[attr-defined]

    def sync(self) -> None:
        """Waits until everything that was launched is done."""
        _session.sync()

    def materialize(self) -> None:
        """Gives memory to the fields that were placed under ``oc.root``.

        Octants calls it before a field is first used, when the field has its memory.
        """
        materialise_root()

    def clear(self) -> None:
        """Ends the session."""
        _session.end()


_RUNTIME = PyQuadrants()
_MATERIALIZE = PyQuadrants.materialize


def is_materialize_wrapped() -> bool:
    """Whether a program has put its own function in the place of ``PyQuadrants.materialize``."""
    return PyQuadrants.materialize is not _MATERIALIZE


def get_runtime() -> PyQuadrants:
    """The current session, as programs for Quadrants see it."""
    return _RUNTIME


def current_cfg():
    """The options of the session: ``oc.cfg``."""
    return _session.cfg


def get_max_shared_memory_bytes(*, is_lowerbound_ok: bool) -> int:
    """How much memory the threads of a block can share on a GPU.

    On a CPU it is ordinary memory: Quadrants has none there, and says 0 if a lower bound is good enough. So does this, also where blocks run on a
    CPU; ``oc.device_properties()`` says how much they have there.
    """
    properties = device_properties()
    if properties.compute_capability is not None:
        return properties.max_shared_bytes_per_block
    if is_lowerbound_ok:
        return 0
    raise RuntimeError(f"get_max_shared_memory_bytes not implemented for arch {properties.arch.name}")


def with_cuda() -> bool:
    """Whether there is code for NVIDIA's GPUs in this version."""
    return "cuda" in _session.runtime.arches


def with_metal() -> bool:
    """Whether there is code for Apple's GPUs in this version."""
    return "metal" in _session.runtime.arches


def with_vulkan() -> bool:
    """Whether there is code for Vulkan in this version."""
    return "vulkan" in _session.runtime.arches


def with_amdgpu() -> bool:
    """Whether there is code for AMD's GPUs in this version."""
    return "amdgpu" in _session.runtime.arches


#: By this a field of a dataclass says in Quadrants that kernels are kept by its value. Octants keeps kernels by what they compile to.
FIELD_METADATA_CACHE_VALUE = "add_value_to_cache_key"

#: The folder that the package is installed in.
package_root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def get_os_name() -> str:
    """The system that this is, as programs for Quadrants ask for it: "linux"."""
    return sys.platform
