"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .._peer.inside import GGUI_AVAILABLE, with_amdgpu, with_cuda, with_metal, with_vulkan

__all__ = ["GGUI_AVAILABLE", "with_amdgpu", "with_cuda", "with_metal", "with_vulkan"]
