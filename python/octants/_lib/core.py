"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .._peer.inside import with_amdgpu, with_cuda, with_metal, with_vulkan

__all__ = ["with_amdgpu", "with_cuda", "with_metal", "with_vulkan"]
