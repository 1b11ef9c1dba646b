"""Figures of a fresh process: `python -m harness.startup WHAT KIND SYSTEM SCRATCH [PROGRAM]`, one JSON line on stdout.

WHAT is `start` (import, init, peak memory) or `compile` (first call of a program, less a steady call). It imports
as little as it can before the clock starts: numpy counts as part of whichever system needs it.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from pathlib import Path

STEADY_CALLS = 20


def start(kind: str, system: str, arch: str) -> dict[str, float]:
    begin = time.perf_counter()
    module = importlib.import_module(system)
    imported = time.perf_counter()
    figures = {"import": imported - begin}
    if kind == "language":
        module.init(arch=getattr(module, arch), enable_fallback=False)
        figures["init"] = time.perf_counter() - imported
    figures["memory"] = peak_memory()
    return figures


def peak_memory() -> float:
    """The highest resident size of this process so far, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return float(line.split()[1]) * 1024
    raise RuntimeError("/proc/self/status has no VmHWM")


def compile(kind: str, system: str, scratch: Path, arch: str, name: str) -> dict[str, float]:
    """Seconds to define a kernel and call it for the first time, less a steady call; for C, the run of gcc."""
    from . import bindings, programs

    program = programs.load(name)
    if kind == "c":
        source = program.source(kind, system)
        assert source is not None
        begin = time.perf_counter()
        bindings.compile_c(program, source, scratch)
        return {"compile": time.perf_counter() - begin}
    bindings.start(kind, system, arch)
    bound = bindings.bind(kind, system, program, program.inputs(**program.sizes["compile"]), scratch, fill=False)
    times = []
    for _ in range(1 + STEADY_CALLS):
        begin = time.perf_counter()
        bound.call(*bound.arguments)
        bound.finish()
        times.append(time.perf_counter() - begin)
    return {"compile": bound.definition_s + times[0] - sorted(times[1:])[STEADY_CALLS // 2]}


def main() -> None:
    what, kind, system, scratch, arch = *sys.argv[1:4], Path(sys.argv[4]), sys.argv[5]
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    figures = start(kind, system, arch) if what == "start" else compile(kind, system, scratch, arch, sys.argv[6])
    answer.write(json.dumps(figures) + "\n")
    answer.close()


if __name__ == "__main__":
    main()
