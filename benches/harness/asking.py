"""Benchmarks that run their own file under each system, in a process of its own."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: Where tables of measurements lie.
RESULTS = Path(__file__).resolve().parents[1] / "results"


class Failed(Exception):
    """A process that gave no figures; the text is the end of what it said."""


def add_systems(parser: argparse.ArgumentParser) -> None:
    """The options that say which systems are measured, and where they are."""
    parser.add_argument("--peer", type=Path, help="a folder that quadrants is imported from")
    parser.add_argument("--peer-python", help="an interpreter that can import quadrants")
    parser.add_argument("--octants", type=Path, help="a folder that octants is imported from")


def chosen_systems(given: argparse.Namespace) -> dict[str, tuple[str, Path | None]]:
    """The interpreter of each system that these options choose, and the folder that it is imported from."""
    systems = {"octants": (sys.executable, given.octants)}
    if given.peer or given.peer_python:
        systems["quadrants"] = (given.peer_python or sys.executable, given.peer)
    return systems


def ask(file: str, python: str, folder: str | Path | None, arguments: list[str], limit: float = 1200.0) -> Any:
    """The last line that a process of the file prints, as data. The folder, if any, is where it finds the system to measure."""
    environment = dict(os.environ)
    if folder:
        environment["PYTHONPATH"] = str(folder)
    done = subprocess.run([python, file, *arguments], env=environment, capture_output=True, text=True, timeout=limit)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        said = done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}, nothing was said"
        raise Failed(f"{' '.join(arguments)}: {said[-3000:]}")
    return json.loads(lines[-1])


def ask_in_turns(
    file: str, given: argparse.Namespace, arguments: Callable[[str], list[str]], times: tuple[str, ...]
) -> dict[str, Any]:
    """What each chosen system's processes answer to these arguments in ``given.rounds`` rounds, with the least of these times."""
    systems = chosen_systems(given)
    rounds: dict[str, list] = {system: [] for system in systems}
    for _ in range(given.rounds):
        for system, (python, folder) in systems.items():
            rounds[system].append(ask(file, python, folder, arguments(system)))
    return {system: best_of(found, times) for system, found in rounds.items()}


def keep(name: str, text: str, data: Any = None) -> None:
    """Leaves a table among the results, and the figures that it was made of."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")
    if data is not None:
        (RESULTS / f"{name}.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def best_of(rounds: list[dict[str, dict[str, Any]]], times: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """The figures of several rounds by name, with the least of these times."""
    best: dict[str, dict[str, Any]] = {}
    for one in rounds:
        for name, figures in one.items():
            known = best.setdefault(name, figures)
            for time in times:
                if time in figures and time in known:
                    known[time] = min(known[time], figures[time])
    return best
