"""Where the time goes: ``oc.init(kernel_profiler=True)`` records every task, copy and launch, and these functions show them.

Recording never makes one thing wait for another: tasks are timed by events on their own streams.
"""

from __future__ import annotations

import os
from collections import namedtuple
from collections.abc import Iterable

from .._octants import SessionProfiler, host_only
from .._octants import scope as _Scope
from .._session import runtime

__all__ = [
    "CuptiMetric",
    "KernelProfilerQueryResult",
    "clear_kernel_profiler_info",
    "clear_scoped_profiler_info",
    "collect_kernel_profiler_metrics",
    "export_trace",
    "get_kernel_profiler_total_time",
    "get_predefined_cupti_metrics",
    "print_kernel_profiler_info",
    "print_memory_profiler_info",
    "print_scoped_profiler_info",
    "print_summary",
    "query_kernel_profiler_info",
    "scope",
    "set_kernel_profiler_metrics",
    "set_kernel_profiler_toolkit",
]


class KernelProfilerQueryResult(namedtuple("KernelProfilerQueryResult", ("counter", "min", "max", "avg"))):
    """How often a kernel was launched, and the milliseconds that its tasks took in one launch."""

    __slots__ = ()


class CuptiMetric:
    """A hardware counter of NVIDIA's GPUs, by the name that their tools give it, and how to print its value."""

    def __init__(self, name="", header="unnamed_header", val_format="     {:8.0f} ", scale=1.0):
        self.name = name
        self.header = header
        self.val_format = val_format
        self.scale = scale

    def __repr__(self):
        return f"CuptiMetric({self.name!r})"


def print_kernel_profiler_info(mode: str = "count") -> None:
    """Prints the times of tasks: by name (``"count"``), or each in the order that they ran (``"trace"``)."""
    if mode not in ("count", "trace"):
        raise ValueError(f'mode is "count" or "trace", not {mode!r}')
    profiler = _recording("print_kernel_profiler_info")
    if profiler is not None:
        print(profiler.count_table() if mode == "count" else profiler.trace_table(), end="", flush=True)


def query_kernel_profiler_info(name: str) -> KernelProfilerQueryResult:
    """Count, least, most and average milliseconds of a kernel, by its name, or of a task, by the name that the table shows."""
    profiler = _recording("query_kernel_profiler_info")
    return KernelProfilerQueryResult(*((0, 0.0, 0.0, 0.0) if profiler is None else profiler.query(name)))


def get_kernel_profiler_total_time() -> float:
    """Seconds that all tasks took together."""
    profiler = _recording("get_kernel_profiler_total_time")
    return 0.0 if profiler is None else profiler.total_time()


def clear_kernel_profiler_info() -> None:
    """Forgets what was recorded of launches and copies."""
    profiler = _recording("clear_kernel_profiler_info")
    if profiler is not None:
        profiler.clear()


def print_summary() -> None:
    """Prints all of it on a page: compilations, launches, how busy streams were, tasks, copies."""
    profiler = _recording("print_summary")
    if profiler is not None:
        print(profiler.summary(), end="", flush=True)


def export_trace(path: str | os.PathLike[str]) -> None:
    """Writes the timeline as JSON, which https://ui.perfetto.dev and Chrome's ``about:tracing`` show."""
    profiler = _recording("export_trace")
    text = '{"traceEvents":[]}\n' if profiler is None else profiler.chrome_trace()
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def scope(name: str) -> _Scope:
    """``with oc.profiler.scope("step"):`` names a part of the host's time in the trace. It does nothing if nothing is recorded."""
    return _Scope(name, runtime)


def print_scoped_profiler_info() -> None:
    """Prints where the time of compilations went, by phase. Every session counts these."""
    profiler = runtime.profiler
    if profiler is not None:
        print(profiler.phase_table(), end="", flush=True)


def clear_scoped_profiler_info() -> None:
    """Forgets what was counted of compilations."""
    profiler = runtime.profiler
    if profiler is not None:
        profiler.clear_phases()


def print_memory_profiler_info() -> None:
    """Prints how much device memory arrays and fields hold."""
    host_only("print_memory_profiler_info")
    if runtime.arch is None:
        from ..exceptions import OctantsRuntimeError

        raise OctantsRuntimeError("there is no session: call oc.init() first")
    from .._fields.builder import materialise_root

    materialise_root()
    print(
        f"Memory of arrays and trees of fields @ {runtime.arch}\n"
        f"{runtime.live_arrays} allocations, {_readable(runtime.live_bytes)} now, {_readable(runtime.peak_bytes)} at most",
        flush=True,
    )


def set_kernel_profiler_toolkit(toolkit_name: str = "default") -> bool:
    """Whether times come from this toolkit now: there is ``"default"`` alone, which records events."""
    if _recording("set_kernel_profiler_toolkit") is None:
        return False
    if toolkit_name != "default":
        _warn(
            f"the toolkit {toolkit_name!r} is not available, the default one stays; NVIDIA's tool ncu shows hardware counters of kernels"
        )
    return toolkit_name == "default"


def set_kernel_profiler_metrics(metric_list: Iterable[CuptiMetric] = ()) -> None:
    """Which hardware counters to read. The default toolkit reads none: times alone are recorded."""
    names = [metric.name for metric in metric_list]
    if _recording("set_kernel_profiler_metrics") is not None and names:
        _warn(f"hardware counters are not read, only times: {', '.join(names)}")


class collect_kernel_profiler_metrics:
    """``with collect_kernel_profiler_metrics(...):`` reads hardware counters, too, where the toolkit does so. What was recorded before is
    forgotten."""

    def __init__(self, metric_list: Iterable[CuptiMetric] = ()):
        self._metrics = list(metric_list)

    def __enter__(self):
        set_kernel_profiler_metrics(self._metrics)
        profiler = runtime.profiler
        if profiler is not None and profiler.recording:
            profiler.clear()
        return self

    def __exit__(self, *_exception):
        return None


_MEGABYTES, _GIGABYTES = 1.0 / 2**20, 1.0 / 2**30

#: Counters by what one wants to know: name, header, format, scale.
_PREDEFINED: dict[str, tuple[tuple[str, str, str, float], ...]] = {
    "global_access": (
        ("dram__bytes.sum", "global", "{:9.3f} MB", _MEGABYTES),
        ("dram__bytes.sum.per_second", "global/s", "{:8.3f} GB/s", _GIGABYTES),
        ("dram__bytes_read.sum", "global read", "{:8.3f} MB", _MEGABYTES),
        ("dram__bytes_read.sum.per_second", "global read/s", "{:8.3f} GB/s", _GIGABYTES),
        ("dram__bytes_write.sum", "global written", "{:8.3f} MB", _MEGABYTES),
        ("dram__bytes_write.sum.per_second", "global written/s", "{:8.3f} GB/s", _GIGABYTES),
    ),
    "shared_access": (
        ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", "shared loads", "{:10.0f}", 1.0),
        ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", "shared stores", "{:10.0f}", 1.0),
        ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", "load conflicts", "{:10.0f}", 1.0),
        ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum", "store conflicts", "{:10.0f}", 1.0),
    ),
    "atomic_access": (
        ("l1tex__t_set_accesses_pipe_lsu_mem_global_op_atom.sum", "global atom", "{:8.0f}", 1.0),
        ("l1tex__t_set_accesses_pipe_lsu_mem_global_op_red.sum", "global red", "{:8.0f}", 1.0),
    ),
    "cache_hit_rate": (
        ("l1tex__t_sector_hit_rate.pct", "L1 hits", "{:6.2f} %", 1.0),
        ("lts__t_sector_hit_rate.pct", "L2 hits", "{:6.2f} %", 1.0),
    ),
    "device_utilization": (
        ("smsp__cycles_active.avg.pct_of_peak_sustained_elapsed", "cores", "{:6.2f} %", 1.0),
        ("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "memory", "{:6.2f} %", 1.0),
        ("l1tex__data_pipe_lsu_wavefronts_mem_shared.avg.pct_of_peak_sustained_elapsed", "shared", "{:6.2f} %", 1.0),
        ("l1tex__throughput.avg.pct_of_peak_sustained_elapsed", "L1", "{:6.2f} %", 1.0),
        ("lts__throughput.avg.pct_of_peak_sustained_elapsed", "L2", "{:6.2f} %", 1.0),
    ),
}


def get_predefined_cupti_metrics(name: str = "") -> list[CuptiMetric] | None:
    """Counters that belong together: "global_access", "shared_access", "atomic_access", "cache_hit_rate", "device_utilization"."""
    if name not in _PREDEFINED:
        _warn(f"there are no predefined metrics {name!r}; there are {', '.join(_PREDEFINED)}")
        return None
    return [CuptiMetric(*metric) for metric in _PREDEFINED[name]]


def _recording(function: str) -> SessionProfiler | None:
    """The profiler, if the session records launches; else a warning."""
    host_only(f"profiler.{function}")
    profiler = runtime.profiler
    if profiler is not None and profiler.recording:
        return profiler
    _warn(f"{function}: nothing is recorded; use oc.init(kernel_profiler=True)")
    return None


def _warn(message: str) -> None:
    import warnings

    warnings.warn(message, UserWarning, stacklevel=4)


def _readable(count: int) -> str:
    for power, unit in ((3, "GB"), (2, "MB"), (1, "kB")):
        if count >= 1000**power:
            return f"{count / 1000**power:.3f} {unit}"
    return f"{count} bytes"


#: Modules that are imported when they are asked for.
_MODULES = ("kernel_metrics", "kernel_profiler", "memory_profiler", "scoped_profiler")


def __getattr__(name: str):
    from .._on_demand import module

    return module(__name__, name, _MODULES)
