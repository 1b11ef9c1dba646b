"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .._fields.axes import axes, i, ij, ijk, ijkl, ijl, ik, ikl, il, j, jk, jkl, jl, k, kl, l
from .._language import loop_config
from .._language.fields import (
    assume_in_range,
    block_local,
    cache_read_only,
    loop_unique,
    no_activate,
)
from .._peer.inside import get_runtime
from .._session import (
    amdgpu,
    arm64,
    cpu,
    cuda,
    dump_compile_config,
    gpu,
    init,
    metal,
    python,
    reset,
    sync,
    vulkan,
    x64,
    x86_64,
)
from .._session.extensions import extension, is_extension_enabled

__all__ = [
    "amdgpu", "arm64", "assume_in_range", "axes", "block_local", "cache_read_only", "cpu", "cuda", "dump_compile_config", "extension", "get_runtime", "gpu", "loop_unique", "no_activate", "i", "ij", "ijk", "ijkl", "ijl", "ik", "ikl", "il",
    "init", "is_extension_enabled", "j", "jk", "jkl", "jl", "k", "kl", "l", "loop_config", "metal", "python", "reset", "sync", "vulkan", "x64", "x86_64",
]  # fmt: skip
