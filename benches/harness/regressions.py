"""Tells what got slower between two builds from what is noise.

Owns the order of measuring two builds and the verdict. A build's value in one process is the best sample there, since other work only adds
time; where memory lies and which cores threads begin on differs from process to process, so a figure has the values of several.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from .figures import Figure
from .process import Failed, Worker, fresh
from .systems import System

OLDER, NEWER = "older", "newer"

# Processes of each build that measure every figure, and those that measure again what looked slower. Chosen, not measured: with six a chance
# order of equal builds passes for a regression in some four of a hundred looks.
FIRST, AGAIN = 3, 6
# The share by which the best of the first processes must be worse for a figure to be measured again, and the least that counts as slower. Two builds of one
# commit differ by up to 2 % where nothing disturbs them.
SUSPICIOUS, LEAST = 0.01, 0.02
# What one process does: turns of so many seconds for a program, or fresh processes for figures of a start.
TURNS, SECONDS, STARTS = 2, 0.2, 3


@dataclass
class Comparison:
    """One figure's value in each process of both builds, and the builds that cannot run it."""

    figure: Figure
    values: dict[str, list[float]] = field(default_factory=lambda: {OLDER: [], NEWER: []})
    failures: dict[str, str] = field(default_factory=dict)
    measured_again: bool = False

    def median(self, build: str) -> float:
        return statistics.median(self.values[build])

    def ratio(self) -> float:
        """How much longer the newer build takes, by the median process of each."""
        return self.median(NEWER) / self.median(OLDER)

    def noise(self) -> float:
        """How far the median process of a build is from its best one: the larger of both, and no less than `LEAST`."""
        return max(LEAST, *(self.median(build) / min(values) - 1 for build, values in self.values.items()))

    def suspicious(self) -> bool:
        return not self.failures and min(self.values[NEWER]) > (1 + SUSPICIOUS) * min(self.values[OLDER])

    def slower(self) -> bool:
        return not self.failures and self.suspicious() and self.ratio() > 1 + self.noise()

    def faster(self) -> bool:
        return not self.failures and self.ratio() < 1 / (1 + self.noise())

    def broken(self) -> bool:
        """Whether the newer build fails at what the older one runs."""
        return NEWER in self.failures and OLDER not in self.failures


def compare(
    figures: list[Figure],
    builds: dict[str, System],
    size: str,
    scratch: Path,
    tell: Callable[[Comparison], None],
) -> list[Comparison]:
    """Measures every figure, and then again those that look slower, whose first values count no more."""
    found = [Comparison(figure) for figure in figures]
    for one in found:
        measure(one, builds, size, scratch, FIRST)
        if one.suspicious():
            one.values = {OLDER: [], NEWER: []}
            one.measured_again = True
            measure(one, builds, size, scratch, AGAIN)
        tell(one)
    return found


def measure(one: Comparison, builds: dict[str, System], size: str, scratch: Path, processes: int) -> None:
    """Adds the values of as many processes of each build, in turns; the build that begins changes."""
    figure = one.figure
    if figure.group in ("start", "compile"):
        for order in orders(processes):
            for build in order:
                attempt(one, build, lambda build=build: fresh_value(figure, builds[build], scratch))
        return
    program = figure.program
    assert program is not None
    reference = scratch / f"{program.name}.npz"
    if not reference.exists():
        np.savez(reference, **program.reference(program.inputs(**program.sizes[size])))
    for order in orders(processes):
        calls(one, order, builds, size, reference, scratch)
    reference.unlink()


def orders(processes: int) -> Iterator[tuple[str, str]]:
    for n in range(processes):
        yield (OLDER, NEWER) if n % 2 == 0 else (NEWER, OLDER)


def attempt(one: Comparison, build: str, value: Callable[[], float]) -> None:
    if build in one.failures:
        return
    try:
        one.values[build].append(value())
    except Failed as reason:
        one.failures[build] = str(reason)


def fresh_value(figure: Figure, system: System, scratch: Path) -> float:
    if figure.group == "start":
        return min(fresh(system, scratch, "start")[0][figure.name] for _ in range(STARTS))
    assert figure.program is not None
    return min(fresh(system, scratch, "compile", figure.program.name)[0]["compile"] for _ in range(STARTS))


def calls(
    one: Comparison, order: tuple[str, str], builds: dict[str, System], size: str, reference: Path, scratch: Path
) -> None:
    """One process of each build runs the program; both measure it in turns."""
    assert one.figure.program is not None
    name = one.figure.program.name
    workers = {build: Worker(builds[build], scratch) for build in order if build not in one.failures}
    samples: dict[str, list[float]] = {build: [] for build in workers}
    try:
        for build, worker in list(workers.items()):
            request = {"do": "load", "program": name, "size": size, "reference": str(reference)}
            ask(one, build, worker, request, workers)
        for _ in range(TURNS):
            for build, worker in list(workers.items()):
                answer = ask(one, build, worker, {"do": "measure", "seconds": SECONDS}, workers)
                samples[build] += answer.get("samples", [])
    finally:
        for worker in workers.values():
            worker.stop()
    for build in workers:
        one.values[build].append(min(samples[build]))


def ask(one: Comparison, build: str, worker: Worker, request: dict, workers: dict[str, Worker]) -> dict:
    """The worker's answer; a worker that fails has no part in this figure any more."""
    try:
        return worker.ask(**request)
    except Failed as reason:
        one.failures[build] = str(reason)
        workers.pop(build).stop()
        return {}
