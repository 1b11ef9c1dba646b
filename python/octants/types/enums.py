"""Enumerations, under the name that programs for Quadrants import them by."""

from __future__ import annotations

from enum import Enum

from .._fields.making import Layout

__all__ = ["DeviceCapability", "Format", "Layout"]

#: How pixels of images can lie in memory, in the order of Quadrants' numbers for them.
Format = Enum(
    "Format",
    """unknown r8 rg8 rgba8 rgba8srgb bgra8 bgra8srgb r8u rg8u rgba8u r8i rg8i rgba8i
    r16 rg16 rgb16 rgba16 r16u rg16u rgb16u rgba16u r16i rg16i rgb16i rgba16i r16f rg16f rgb16f rgba16f
    r32u rg32u rgb32u rgba32u r32i rg32i rgb32i rgba32i r32f rg32f rgb32f rgba32f depth16 depth24stencil8 depth32f""",
    start=0,
    module=__name__,
)


class DeviceCapability:
    """What a device for SPIR-V can do, as Quadrants writes it. Octants has none of these devices."""

    spirv_version_1_3 = "spirv_version=66304"
    spirv_version_1_4 = "spirv_version=66560"
    spirv_version_1_5 = "spirv_version=66816"
    spirv_has_int8 = "spirv_has_int8"
    spirv_has_int16 = "spirv_has_int16"
    spirv_has_int64 = "spirv_has_int64"
    spirv_has_float16 = "spirv_has_float16"
    spirv_has_float64 = "spirv_has_float64"
    spirv_has_atomic_int64 = "spirv_has_atomic_int64"
    spirv_has_atomic_float16 = "spirv_has_atomic_float16"
    spirv_has_atomic_float16_add = "spirv_has_atomic_float16_add"
    spirv_has_atomic_float16_minmax = "spirv_has_atomic_float16_minmax"
    spirv_has_atomic_float = "spirv_has_atomic_float"
    spirv_has_atomic_float_add = "spirv_has_atomic_float_add"
    spirv_has_atomic_float_minmax = "spirv_has_atomic_float_minmax"
    spirv_has_atomic_float64 = "spirv_has_atomic_float64"
    spirv_has_atomic_float64_add = "spirv_has_atomic_float64_add"
    spirv_has_atomic_float64_minmax = "spirv_has_atomic_float64_minmax"
    spirv_has_variable_ptr = "spirv_has_variable_ptr"
    spirv_has_physical_storage_buffer = "spirv_has_physical_storage_buffer"
    spirv_has_subgroup_basic = "spirv_has_subgroup_basic"
    spirv_has_subgroup_vote = "spirv_has_subgroup_vote"
    spirv_has_subgroup_arithmetic = "spirv_has_subgroup_arithmetic"
    spirv_has_subgroup_ballot = "spirv_has_subgroup_ballot"
    spirv_has_non_semantic_info = "spirv_has_non_semantic_info"
    spirv_has_no_integer_wrap_decoration = "spirv_has_no_integer_wrap_decoration"
