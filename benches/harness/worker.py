"""One system's process: `python -m harness.worker KIND SYSTEM SCRATCH ARCH`, driven by JSON lines.

Owns loading, checking and timing under one system. Requests come on standard input, one answer each goes to the
original standard output; whatever a system prints goes to standard error, so that it cannot be taken for an answer.

    {"do": "load", "program": "saxpy", "size": "full", "reference": "saxpy.npz"}
        -> {"ok": true, "first_s": 0.1, "calls": 1}
    {"do": "measure", "seconds": 0.25}
        -> {"ok": true, "samples": [...], "others": 0.01}
    {"do": "drop"}
        -> {"ok": true}

A request that fails answers {"ok": false, "error": "..."}.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import traceback
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from . import bindings, calm, programs

# One sample runs at least this long, so that the clock and the loop around the call do not count.
SAMPLE_SECONDS = 0.01
FEWEST_SAMPLES = 3


class Worker:
    def __init__(self, kind: str, system: str, scratch: Path, arch: str) -> None:
        self.kind, self.system, self.scratch, self.arch = kind, system, scratch, arch
        self.started = False
        self.bound: bindings.Bound | None = None
        self.calls = 1

    def load(self, program: str, size: str, reference: str, most: int | None = None) -> dict[str, Any]:
        """Binds the program, runs it once, and compares what it computed with the reference."""
        if not self.started:
            bindings.start(self.kind, self.system, self.arch)
            self.started = True
        described = programs.load(program)
        data = described.inputs(**described.sizes[size])
        bound = bindings.bind(self.kind, self.system, described, data, self.scratch)
        begin = time.perf_counter()
        returned = bound.call(*bound.arguments)
        bound.finish()
        first = time.perf_counter() - begin
        with np.load(reference) as expected:
            described.check(bound.outputs(returned), dict(expected), most)
        self.bound = bound
        self.calls = 1
        while (elapsed := self.sample(self.calls)) < SAMPLE_SECONDS and self.calls < 1_000_000:
            self.calls = max(self.calls * 2, int(self.calls * SAMPLE_SECONDS / max(elapsed, 1e-9)))
        return {"first_s": first, "calls": self.calls}

    def sample(self, calls: int) -> float:
        assert self.bound is not None
        call, arguments, finish = self.bound.call, self.bound.arguments, self.bound.finish
        begin = time.perf_counter()
        for _ in repeat(None, calls):
            call(*arguments)
        finish()
        return time.perf_counter() - begin

    def measure(self, seconds: float) -> dict[str, Any]:
        """Seconds per call, one value per sample, and the share of the machine that others took meanwhile."""
        self.sample(1)  # wakes threads and caches after the other systems' turns
        samples: list[float] = []
        watch, own = calm.Watch(), time.process_time()
        deadline = time.perf_counter() + seconds
        while len(samples) < FEWEST_SAMPLES or time.perf_counter() < deadline:
            samples.append(self.sample(self.calls) / self.calls)
        return {"samples": samples, "others": watch.others(time.process_time() - own)}

    def drop(self) -> dict[str, Any]:
        self.bound = None
        gc.collect()
        return {}


def main() -> None:
    kind, system, scratch, arch = sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4]
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    worker = Worker(kind, system, scratch, arch)
    for line in sys.stdin:
        request = json.loads(line)
        action = request.pop("do")
        try:
            answer = {"ok": True} | getattr(worker, action)(**request)
        except (programs.WrongResult, programs.BadProgram) as reason:
            answer = {"ok": False, "error": str(reason)}
        except Exception as reason:
            traceback.print_exc()
            answer = {"ok": False, "error": f"{type(reason).__name__}: {str(reason).strip() or 'no message'}"}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
