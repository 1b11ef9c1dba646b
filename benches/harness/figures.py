"""What is measured: a `Figure` is one row of the tables, with the samples of every system.

Owns the list of rows and what a row's value is. `driver` fills them; `report` and `plot` read them. A result file is
exactly `to_json` of these, so that tables and plots can be made again from it.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Any

from . import calm
from .programs import Program
from .targets import Target, TimesBetter, Under

GROUPS = {
    "start": "Start of a process",
    "compile": "Cold compile (first call of a kernel in a fresh process, caches off)",
    "launch": "Launch of a tiny kernel, time per call",
    "throughput": "Throughput, time per call",
}


@dataclass(frozen=True)
class Turn:
    """What one system measured in one round, and the share of the machine that others took meanwhile."""

    samples: list[float]
    others: float

    @property
    def calm(self) -> bool:
        return self.others <= calm.LIMIT


@dataclass
class Figure:
    name: str
    title: str
    group: str
    unit: str  # "s" or "B"
    targets: tuple[Target, ...]
    note: str = ""
    program: Program | None = None
    bytes_moved: int | None = None
    turns: dict[str, list[Turn]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def add(self, system: str, samples: list[float], others: float) -> None:
        self.turns.setdefault(system, []).append(Turn(samples, others))

    def calm_turns(self, system: str) -> int:
        return sum(turn.calm for turn in self.turns.get(system, []))

    def needs_more(self) -> bool:
        """Whether some system that runs has had too few calm turns."""
        return any(self.calm_turns(system) < calm.ENOUGH for system in self.turns)

    def samples(self) -> dict[str, list[float]]:
        """Of calm turns; of all turns for a system that had no calm one."""
        counted = {}
        for system, turns in self.turns.items():
            chosen = [turn for turn in turns if turn.calm] or turns
            counted[system] = [sample for turn in chosen for sample in turn.samples]
        return counted

    def disturbed(self) -> list[str]:
        return [system for system in self.turns if self.calm_turns(system) == 0]

    def fail(self, system: str, reason: str) -> None:
        """From here on the system has no value in this row: a wrong or missing result is not a time."""
        self.failures[system] = reason
        self.turns.pop(system, None)

    def best(self) -> dict[str, float]:
        return {system: min(samples) for system, samples in self.samples().items()}

    def median(self) -> dict[str, float]:
        return {system: statistics.median(samples) for system, samples in self.samples().items()}

    def verdicts(self) -> list[tuple[str, bool | None]]:
        values = self.best()
        return [(str(target), target.reached(values)) for target in self.targets]

    def to_json(self) -> dict[str, Any]:
        best = self.best()
        document: dict[str, Any] = {
            "name": self.name,
            "title": self.title,
            "group": self.group,
            "unit": self.unit,
            "note": self.note,
            "best": best,
            "median": self.median(),
            "turns": {system: len(turns) for system, turns in self.turns.items()},
            "calm_turns": {system: self.calm_turns(system) for system in self.turns},
            "disturbed": self.disturbed(),
            "targets": [{"target": text, "reached": reached} for text, reached in self.verdicts()],
        }
        if self.bytes_moved is not None:
            document["bytes_moved"] = self.bytes_moved
        if self.failures:
            document["failures"] = self.failures
        return document


def all_figures(programs: list[Program], size: str) -> list[Figure]:
    figures = [
        Figure("import", "import", "start", "s", (TimesBetter(5, "quadrants"),), "numpy's own import included"),
        Figure("init", "init", "start", "s", (TimesBetter(5, "quadrants"),), "init(arch=cpu)"),
        Figure("memory", "peak memory of import and init", "start", "B", (Under(120e6, "120 MB"),), "VmHWM"),
    ]
    for program in programs:
        if program.compile:
            title = f"compile {program.title}"
            figures.append(
                Figure(f"compile_{program.name}", title, "compile", "s", program.compile_targets, program=program)
            )
    for program in programs:
        extents = program.sizes[size]
        moved = program.bytes_moved(**extents) if program.bytes_moved else None
        figures.append(
            Figure(
                program.name,
                program.title,
                program.group,
                "s",
                program.targets,
                note=program.summary.split("\n", 1)[0].format(**extents),
                program=program,
                bytes_moved=moved,
            )
        )
    return figures
