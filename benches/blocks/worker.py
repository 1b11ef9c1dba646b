"""One system's process: `python -m blocks.worker SYSTEM ARCH`, asked by JSON lines, each of which gets one.

    {"do": "load", "row": "scan", "size": "gpu", "seed": 1}       binds, runs once, and compares
    {"do": "measure", "seconds": 0.2}                             -> {"seconds": of a run}
    {"do": "check", "seed": 2}                                    draws other data, runs once, and compares
    {"do": "drop"}

`python -m blocks.worker SYSTEM ARCH compile` prints the seconds that the kernel with eight shared arrays takes to compile, and leaves.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import statistics
import sys
import time
import traceback
from itertools import repeat
from typing import Any

import numpy as np

from . import rows

#: A sample is so long at least, in seconds, and a turn has so many.
SAMPLE, FEWEST = 0.01, 3


class Worker:
    def __init__(self, system: str, arch: str) -> None:
        self.system, self.arch = system, arch
        self.bind: Any = None
        self.bound: Any = None
        self.row = rows.ROWS[0]
        self.size: rows.Size = {}
        self.runs = 1

    def load(self, row: str, size: str, seed: int) -> dict[str, Any]:
        if self.bind is None:
            self.bind = started(self.system, self.arch)
        self.row = rows.by_name()[row]
        self.size = self.row.sizes[size]
        self.bound = self.bind(self.row, self.size)
        self.check(seed)
        self.runs = 1
        while (elapsed := self.sample()) < SAMPLE and self.runs < 1_000_000:
            self.runs = max(self.runs * 2, int(self.runs * SAMPLE / max(elapsed, 1e-9)))
        return {}

    def check(self, seed: int) -> dict[str, Any]:
        inputs = self.row.inputs(np.random.default_rng(seed), **self.size)
        self.bound.fill(inputs)
        self.bound.run()
        self.bound.finish()
        rows.check(self.row, inputs, self.bound.results())
        return {}

    def sample(self) -> float:
        begin = time.perf_counter()
        for _ in repeat(None, self.runs):
            self.bound.run()
        self.bound.finish()
        return time.perf_counter() - begin

    def measure(self, seconds: float) -> dict[str, Any]:
        """The median of a turn's samples."""
        self.bound.run()
        self.bound.finish()
        samples: list[float] = []
        deadline = time.perf_counter() + seconds
        while time.perf_counter() < deadline or len(samples) < (1 if samples and samples[0] > seconds else FEWEST):
            samples.append(self.sample() / self.runs)
        return {"seconds": statistics.median(samples)}

    def drop(self) -> dict[str, Any]:
        self.bound = None
        gc.collect()
        if self.system == "torch":
            importlib.import_module("torch").cuda.empty_cache()
        return {}


def started(system: str, arch: str) -> Any:
    """What binds rows under a system."""
    if system in ("torch", "warp"):
        return importlib.import_module(f".{system}_programs", __package__).start(arch)
    return importlib.import_module(".languages", __package__).start(system, arch)


def compile_seconds(system: str, arch: str) -> float:
    """Of a kernel with eight shared arrays: its text and the first call, less a later one."""
    from . import contacts

    module = importlib.import_module(system)
    module.init(arch=getattr(module, arch), offline_cache=False, enable_fallback=False, log_level="error")
    free, constraints, scenes = contacts.FREE, contacts.CONSTRAINTS, 1
    shapes = [(scenes, constraints, free), (scenes, free, free), (scenes, constraints), (scenes, constraints)]
    arrays = [module.ndarray(module.f32, shape) for shape in [*shapes, (scenes, free), (scenes,)]]
    module.sync()
    begin = time.perf_counter()
    kernel = contacts.step(module)
    kernel(*arrays)
    module.sync()
    first = time.perf_counter() - begin
    begin = time.perf_counter()
    kernel(*arrays)
    module.sync()
    return first - (time.perf_counter() - begin)


def main() -> None:
    system, arch = sys.argv[1:3]
    # What systems print is no answer.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    if sys.argv[3:] == ["compile"]:
        answers.write(f"{compile_seconds(system, arch)}\n")
        return
    worker = Worker(system, arch)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"ok": True} | getattr(worker, request.pop("do"))(**request)
        except Exception as reason:
            traceback.print_exc()
            answer = {"ok": False, "error": f"{type(reason).__name__}: {str(reason).strip() or 'no message'}"[:400]}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
