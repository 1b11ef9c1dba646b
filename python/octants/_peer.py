"""What programs for Quadrants ask of its inside: which devices it was built for, and the options of the session."""

from __future__ import annotations

from . import _session


class _Program:
    """The session, as programs for Quadrants see it."""

    def synchronize(self) -> None:
        """Waits until everything that was launched is done."""
        _session.sync()


class _Runtime:
    """The options of the session, as programs for Quadrants see them."""

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


_RUNTIME = _Runtime()


def get_runtime() -> _Runtime:
    """The options of the current session."""
    return _RUNTIME


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
