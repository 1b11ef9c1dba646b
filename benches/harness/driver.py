"""Runs the benchmarks: finds the systems, gives each its turn in every round, writes the results.

Owns the order of measuring. In every round each system measures the same figure, one after the other, and only one
process works at a time; noise of the machine therefore falls on all of them alike.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from . import machine, plot, programs, report, systems
from .figures import Figure, all_figures
from .process import Failed, Worker, fresh
from .systems import System
from .venvs import Unavailable

RESULTS = Path(__file__).resolve().parents[1] / "results"


def main(args: argparse.Namespace) -> int:
    if args.plot:
        document = json.loads(Path(args.plot).read_text())
        publish(document, Path(args.plot).parent, Path(args.plot).stem)
        return 0
    size = "quick" if args.quick else "full"
    try:
        figures = chosen(all_figures(programs.load_all(), size), args.only)
    except (programs.BadProgram, ValueError) as reason:
        sys.exit(f"error: {reason}")
    if args.list:
        for figure in figures:
            print(f"{figure.name:24} {figure.note or figure.title}")
        return 0
    found, missing = find_systems(args)
    rounds = args.rounds or (3 if args.quick else 7)
    partial = bool(args.quick or args.only or args.systems)
    before, begin = machine.load_average(), time.time()
    if before > 0.5:
        print(f"  note: the load average is {before}; disturbed turns are repeated, which takes up to twice as long")
    with tempfile.TemporaryDirectory(prefix="octants-bench-") as scratch:
        measure(figures, found, size, rounds, 0.1 if args.quick else 0.25, Path(scratch))
    document = {
        "machine": machine.describe(),
        "load_average": {"before": before, "after": machine.load_average()},
        "date": time.strftime("%Y-%m-%d", time.gmtime(begin)),
        "seconds": round(time.time() - begin),
        "size": size,
        "rounds": rounds,
        "systems": {system.name: system.version for system in found},
        "missing": missing,
        "figures": [figure.to_json() for figure in figures],
    }
    name = args.name or ("partial" if partial else "cpu")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    publish(document, RESULTS, name)
    return 1 if any(figure.failures for figure in figures) else 0


def publish(document: dict, folder: Path, name: str) -> None:
    """The tables on the terminal and in Markdown, and the plot, from a result document."""
    print()
    print(report.terminal(document))
    table = folder / ("table.md" if name == "cpu" else f"{name}.md")
    table.write_text(report.markdown(document))
    picture = folder / f"{name}.svg"
    drawn = plot.draw(document, picture)
    written = [f"{name}.json", table.name, *([picture.name] if drawn else [])]
    print(f"\nwritten to {folder.name}/: {', '.join(written)}")


def chosen(figures: list[Figure], only: list[str] | None) -> list[Figure]:
    if not only:
        return figures
    words = [word.strip() for entry in only for word in entry.split(",") if word.strip()]
    for word in words:
        if not any(word in figure.name for figure in figures):
            known = ", ".join(figure.name for figure in figures)
            raise ValueError(f"no figure is named like {word!r}; there are {known}")
    return [figure for figure in figures if any(word in figure.name for word in words)]


def find_systems(args: argparse.Namespace) -> tuple[list[System], dict[str, str]]:
    names = [name.strip() for name in args.systems.split(",")] if args.systems else list(systems.KINDS)
    if unknown := [name for name in names if name not in systems.KINDS]:
        sys.exit(f"error: unknown system {', '.join(unknown)}; there are {', '.join(systems.KINDS)}")
    found: list[System] = []
    missing: dict[str, str] = {}
    print("systems")
    for name in (name for name in systems.KINDS if name in names):
        try:
            system = systems.find(name, args.octants_python)
        except Unavailable as reason:
            missing[name] = str(reason)
            print(f"  {name:10} skipped: {reason}", flush=True)
            continue
        found.append(system)
        print(f"  {name:10} {system.version:12} {system.origin}", flush=True)
    if not found:
        sys.exit("error: none of the systems can run")
    return found, missing


def measure(figures: list[Figure], found: list[System], size: str, rounds: int, seconds: float, scratch: Path) -> None:
    start = [figure for figure in figures if figure.group == "start"]
    if start:
        measure_start(start, [system for system in found if system.kind != "c"], rounds, scratch)
    workers = [Worker(system, scratch) for system in found]
    try:
        for figure in figures:
            if figure.group == "compile":
                measure_compile(figure, found, rounds, scratch)
            elif figure.group != "start":
                measure_calls(figure, workers, size, rounds, seconds, scratch)
    finally:
        for worker in workers:
            worker.stop()


def turns(figures: list[Figure], rounds: int, first: int = 0) -> Iterator[int]:
    """The numbers of the rounds: `rounds`, and up to as many again while a system has had too few calm turns."""
    for turn in range(first, 2 * rounds + 1):
        if turn > rounds and not any(figure.needs_more() for figure in figures):
            return
        yield turn


def measure_start(figures: list[Figure], found: list[System], rounds: int, scratch: Path) -> None:
    """All figures of a start come from the same processes. Round 0 fills the file cache and is not counted."""
    broken: set[str] = set()
    for turn in turns(figures, rounds):
        for system in found:
            if system.name in broken:
                continue
            progress("start", turn, rounds, system.name)
            try:
                taken, others = fresh(system, scratch, "start")
            except Failed as reason:
                broken.add(system.name)
                for figure in figures:
                    figure.fail(system.name, str(reason))
                continue
            for figure in figures:
                if turn > 0 and figure.name in taken:
                    figure.add(system.name, [taken[figure.name]], others)
    for figure in figures:
        finished(figure)


def measure_compile(figure: Figure, found: list[System], rounds: int, scratch: Path) -> None:
    assert figure.program is not None
    for turn in turns([figure], rounds):
        for system in found:
            if system.name in figure.failures or figure.program.source(system.kind, system.name) is None:
                continue
            progress(figure.name, turn, rounds, system.name)
            try:
                taken, others = fresh(system, scratch, "compile", figure.program.name)
            except Failed as reason:
                figure.fail(system.name, str(reason))
                continue
            if turn > 0:
                figure.add(system.name, [taken["compile"]], others)
    finished(figure)


def measure_calls(
    figure: Figure,
    workers: list[Worker],
    size: str,
    rounds: int,
    seconds: float,
    scratch: Path,
    most: int | None = None,
) -> None:
    """`most` limits how many elements of each result are compared with the reference."""
    program = figure.program
    assert program is not None
    reference = scratch / f"{program.name}.npz"
    np.savez(reference, **programs.sampled(program.reference(program.inputs(**program.sizes[size])), most))
    loaded: list[Worker] = []
    for worker in workers:
        if program.source(worker.system.kind, worker.system.name) is None:
            continue
        progress(figure.name, 0, rounds, worker.system.name)
        try:
            worker.ask(do="load", program=program.name, size=size, reference=str(reference), most=most)
        except Failed as reason:
            figure.fail(worker.system.name, str(reason))
            continue
        loaded.append(worker)
    for turn in turns([figure], rounds, first=1):
        for worker in list(loaded):
            progress(figure.name, turn, rounds, worker.system.name)
            try:
                figure.add(worker.system.name, **worker.ask(do="measure", seconds=seconds))
            except Failed as reason:
                figure.fail(worker.system.name, str(reason))
                loaded.remove(worker)
    for worker in loaded:
        worker.ask(do="drop")
    reference.unlink()
    finished(figure)


def progress(name: str, turn: int, rounds: int, system: str) -> None:
    if sys.stdout.isatty():
        print(f"\r\033[K  {name}: round {turn} of {rounds}, {system}", end="", flush=True)


def finished(figure: Figure) -> None:
    best = figure.best()
    values = "  ".join(f"{system} {report.quantity(value, figure.unit)}" for system, value in best.items())
    print(f"{chr(13) + chr(27) + '[K' if sys.stdout.isatty() else ''}  {figure.name:22} {values}", flush=True)
    for system, reason in figure.failures.items():
        print(f"  {'':22} {system} FAILED: {reason}", flush=True)
