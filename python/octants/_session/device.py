"""What the device of the session is, in numbers."""

from __future__ import annotations

from collections import namedtuple

from .. import _session
from .._octants import host_only

# Not by `typing`, which takes longer to import than the package.
_FIELDS = (
    "name",
    "arch",
    "compute_capability",
    "driver_version",
    "cores",
    "subgroup_size",
    "max_threads_per_core",
    "max_blocks_per_core",
    "max_threads_per_block",
    "shared_bytes_per_block",
    "max_shared_bytes_per_block",
    "shared_bytes_per_core",
    "registers_per_block",
    "registers_per_core",
    "l2_bytes",
    "total_memory_bytes",
    "free_memory_bytes",
)


class DeviceProperties(namedtuple("DeviceProperties", _FIELDS)):
    """What a device is: ``oc.device_properties()`` gives it. What a device does not have is 0 or ``None``."""

    __slots__ = ()

    name: str
    """What the device calls itself."""
    arch: _session.Arch
    """Such as ``oc.cuda``."""
    compute_capability: tuple[int, int] | None
    """``(9, 0)`` of an H200; ``None`` of a CPU."""
    driver_version: tuple[int, int] | None
    """The newest CUDA that the driver supports; ``None`` of a CPU."""
    cores: int
    """Multiprocessors of a GPU; threads that run loops on a CPU."""
    subgroup_size: int
    """Lanes of a subgroup: 32."""
    max_threads_per_core: int
    """Threads that a core runs at once, at most."""
    max_blocks_per_core: int
    """Blocks that a core runs at once, at most."""
    max_threads_per_block: int
    """The greatest ``block_dim``."""
    shared_bytes_per_block: int
    """Bytes of shared memory that a block has in any launch."""
    max_shared_bytes_per_block: int
    """Bytes that the shared arrays of a loop may take, at most: a launch asks for what is beyond ``shared_bytes_per_block``."""
    shared_bytes_per_core: int
    """Bytes that the blocks of a core have together."""
    registers_per_block: int
    """Registers of 32 bits."""
    registers_per_core: int
    """Registers of 32 bits."""
    l2_bytes: int
    """Bytes of the second-level cache: a GPU's, or one core's of a CPU."""
    total_memory_bytes: int
    """Bytes of memory; on a CPU what the process may have, swap included."""
    free_memory_bytes: int
    """Those that nobody used when this was asked."""


def device_properties() -> DeviceProperties:
    """What the device of the session is: its cores, its shared memory, its registers and its memory, as they are now.

    Starts a session if there is none.
    """
    host_only("device_properties")
    # All of it from one session, for another thread may reset it meanwhile.
    arch, name, numbers = _session.runtime.device_properties()
    capability = numbers.pop("capability_major"), numbers.pop("capability_minor")
    driver = numbers.pop("driver_major"), numbers.pop("driver_minor")
    return DeviceProperties(
        name=name,
        arch=_session._BY_NAME[arch],
        compute_capability=capability if any(capability) else None,
        driver_version=driver if any(driver) else None,
        total_memory_bytes=numbers.pop("total_bytes"),
        free_memory_bytes=numbers.pop("free_bytes"),
        **numbers,
    )
