"""Benchmarks that run their own file under each system, in a process of its own."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


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
