"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from . import (
    clear_kernel_profiler_info,
    collect_kernel_profiler_metrics,
    get_kernel_profiler_total_time,
    print_kernel_profiler_info,
    query_kernel_profiler_info,
    set_kernel_profiler_metrics,
    set_kernel_profiler_toolkit,
)

__all__ = [
    "clear_kernel_profiler_info",
    "collect_kernel_profiler_metrics",
    "get_kernel_profiler_total_time",
    "print_kernel_profiler_info",
    "query_kernel_profiler_info",
    "set_kernel_profiler_metrics",
    "set_kernel_profiler_toolkit",
]
