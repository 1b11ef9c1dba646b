# type: ignore  (in the kernel language annotations are values)
"""Names and forms of Taichi that Quadrants has dropped. Programs find them once Octants is installed as "taichi", and only then."""

from __future__ import annotations

import sys

from .. import profiler
from .._fields.making import field, matrix_field, vector_field
from .._language import _marked, _only_in_kernels
from ..ad import Tape
from ..math import pi
from ..tools.image import imread, imresize, imwrite
from ..types import ndarray as any_arr
from ..types import ndarray as ext_arr

__all__ = [
    "Tape", "any_arr", "block_dim", "clear_kernel_profile_info", "ext_arr", "hex_to_rgb", "imread", "imresize", "imwrite", "kernel_profiler_clear",
    "kernel_profiler_print", "kernel_profiler_total_time", "pi", "print_kernel_profile_info", "query_kernel_profile_info", "rgb_to_hex", "var",
]  # fmt: skip

print_kernel_profile_info = profiler.print_kernel_profiler_info
query_kernel_profile_info = profiler.query_kernel_profiler_info
clear_kernel_profile_info = kernel_profiler_clear = profiler.clear_kernel_profiler_info
kernel_profiler_total_time = profiler.get_kernel_profiler_total_time

#: Options of Taichi's ``init`` that mean nothing here, besides those that Quadrants takes as well.
OPTIONS = frozenset([
    "allow_nv_shader_extension", "async_flush_every", "async_listgen_fast_filtering", "async_max_fuse_per_task", "async_mode", "async_opt_activation_demotion",
    "async_opt_dse", "async_opt_fusion", "async_opt_fusion_max_iter", "async_opt_intermediate_file", "async_opt_listgen", "async_opt_passes", "cc_compile_cmd",
    "cc_link_cmd", "compile_config", "cuda_stack_limit", "dynamic_index", "enable_profiler", "excepthook", "experimental_real_function", "fast_float",
    "lazy_compilation", "make_cpu_multithreading_loop", "max_vector_width", "ndarray_use_cached_allocator", "ndarray_use_torch", "num_compile_threads_async",
    "packed", "print_accessor_ir", "print_benchmark_stat", "print_evaluator_ir", "print_kernel_nvptx", "real_matrix", "serial_schedule", "simplify_ir",
    "spirv_disable_buffer_index_assert", "strictly_serialized", "test_mode", "use_gles", "use_mesh", "use_unified_memory", "validate_autodiff", "verbose_kernel",
    "vectorize", "wait_for_debugger",
])  # fmt: skip


def is_installed() -> bool:
    """Whether programs that import Taichi find Octants."""
    return sys.modules.get("taichi") is sys.modules["octants"]


def kernel_profiler_print(mode: str = "count") -> None:
    """Prints how long kernels took: ``profiler.print_kernel_profiler_info``."""
    profiler.print_kernel_profiler_info(mode)


@_marked("block_dim")
def block_dim(dim):
    """``loop_config(block_dim=dim)``, of the loop that follows in a kernel."""
    raise _only_in_kernels("block_dim")


def var(dt, shape=None, offset=None, needs_grad=False, **options):
    """A field of numbers: ``oc.field``."""
    return field(dt, shape, offset=offset, needs_grad=needs_grad, **options)


def old_field(is_vector: bool, args: tuple, options: dict):
    """The field that ``ti.Vector(n, dt=..., shape=...)`` and ``ti.Matrix(n, m, dt=..., shape=...)`` were; ``None`` if these are not its arguments."""
    names = ("n", "dt") if is_vector else ("n", "m", "dt")
    given = {**dict(zip(names, args, strict=False)), **options}
    extents = [given.pop(name, None) for name in names[:-1]]
    if len(args) > len(names) or any(not hasattr(extent, "__index__") for extent in extents) or "dt" not in given:
        return None
    make = vector_field if is_vector else matrix_field
    return make(*extents, given.pop("dt"), **given)


def rgb_to_hex(c) -> int:
    """Red, green and blue from 0 to 1, also as arrays, as a number of 24 bits."""
    import numpy

    red, green, blue = (numpy.clip(numpy.int32(numpy.asarray(part) * 255), 0, 255) for part in c)
    found = (red << 16) + (green << 8) + blue
    return found if found.ndim else int(found)


def hex_to_rgb(hex: int) -> tuple[float, float, float]:
    """Red, green and blue from 0 to 1 of a number of 24 bits."""
    return ((hex >> 16) & 255) / 255, ((hex >> 8) & 255) / 255, (hex & 255) / 255
