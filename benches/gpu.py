"""Benchmarks on a GPU: `python benches/gpu.py --out FOLDER`.

The programs of `benches/programs/` at the sizes that fill a GPU, under octants and, where they can be imported, torch and quadrants, in
turns. It needs Python, numpy and an importable octants, makes no environments and reaches no network. Results are compared with numpy
before anything is timed.

    python benches/gpu.py                            every figure, into benches/results/gpu.{txt,md,json}
    python benches/gpu.py --only launch --only sum   figures whose name contains a word
    python benches/gpu.py --peer FOLDER              quadrants, from a folder that its wheel was unpacked into
    python benches/gpu.py --table bench.json         the tables of a result that was brought from elsewhere
    python benches/gpu.py --arch cpu --size quick    does it run, on a machine without a GPU
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BENCHES = Path(__file__).resolve().parent
sys.path.insert(0, str(BENCHES))

from harness import driver, machine, programs  # noqa: E402
from harness.figures import Figure  # noqa: E402
from harness.gpu_figures import ROWS, Row  # noqa: E402
from harness.process import Worker  # noqa: E402
from harness.systems import System  # noqa: E402

#: Elements of each result that are compared with numpy's: all of 2**28 would take longer than the measurement.
COMPARED = 1 << 22


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benches/gpu.py", description="Benchmarks of octants on a GPU.")
    parser.add_argument("--arch", default="cuda", help="the device (default: cuda)")
    parser.add_argument("--size", default="gpu", help="the size of the programs: gpu, full or quick")
    parser.add_argument("--only", action="append", metavar="NAME", help="only figures whose name contains NAME")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="turns of each system per figure")
    parser.add_argument("--seconds", type=float, default=0.2, metavar="S", help="length of a turn")
    parser.add_argument("--minutes", type=float, default=1e9, metavar="M", help="begin no figure after that time")
    parser.add_argument("--systems", default="octants,torch,quadrants", metavar="A,B")
    parser.add_argument("--peer", metavar="FOLDER", help="a folder that quadrants is imported from")
    parser.add_argument("--out", type=Path, default=BENCHES / "results", metavar="FOLDER")
    parser.add_argument("--name", default="gpu", help="name of the result files")
    parser.add_argument("--table", type=Path, metavar="JSON", help="only write the tables of an earlier result")
    parser.add_argument("--list", action="store_true", help="list the figures and leave")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    if args.table:
        publish(json.loads(args.table.read_text()), args.out, args.name)
        return 0
    rows = [row for row in ROWS if not args.only or any(word in row.name for word in args.only)]
    if args.list or not rows:
        print("\n".join(f"{row.name:20} {row.title}" for row in ROWS))
        return 0 if args.list else 1
    found, missing = find_systems(args)
    begin = time.monotonic()
    late: list[str] = []
    with tempfile.TemporaryDirectory(prefix="octants-gpu-bench-") as scratch:
        workers = [Worker(system, Path(scratch)) for system in found]
        try:
            for row in rows:
                if time.monotonic() - begin > 60 * args.minutes:
                    late.append(row.name)
                    continue
                measure(row, found, workers, args, Path(scratch))
        finally:
            for worker in workers:
                worker.stop()
    measured = [row for row in rows if row.name not in late]
    document = {
        "machine": machine.describe(),
        "gpu": describe_gpu(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "seconds": round(time.monotonic() - begin),
        "arch": args.arch,
        "size": args.size,
        "systems": {system.name: system.version for system in found},
        "missing": missing | dict.fromkeys(late, "not begun in time"),
        "figures": [row.to_json(args.size) for row in measured],
    }
    publish(document, args.out, args.name)
    return 1 if any(row.figure.failures for row in measured) else 0


def find_systems(args: argparse.Namespace) -> tuple[list[System], dict[str, str]]:
    """The systems that can be imported and start on the device. Each has processes of its own."""
    kinds = {"octants": "language", "quadrants": "language", "torch": "torch"}
    found, missing = [], {}
    for name in args.systems.split(","):
        path = args.peer if name == "quadrants" else None
        system = System(name, kinds[name], Path(sys.executable), "", "", args.arch, path)
        code = (
            "import importlib.metadata as metadata\n"
            "from harness import bindings\n"
            f"module = bindings.start({system.kind!r}, {name!r}, {args.arch!r})\n"
            f"try: version = metadata.version({name!r})\n"
            "except metadata.PackageNotFoundError: version = module.__version__\n"
            "print('\\nversion', version)\n"
        )
        done = None
        if path or importlib.util.find_spec(name):
            paths = [str(BENCHES), *filter(None, [path, os.environ.get("PYTHONPATH")])]
            env = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
            done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=180)
        if done is None or done.returncode:
            lines = ["not installed"] if done is None else (done.stderr.strip() or "no message").splitlines()
            missing[name] = lines[-1]
            print(f"  {name:10} skipped: {lines[-1]}", flush=True)
            if name == "octants":
                sys.exit(f"error: octants does not start on {args.arch}")
            continue
        version = done.stdout.rsplit("version ", 1)[1].strip()
        found.append(System(name, system.kind, system.python, version, path or "", args.arch, path))
        print(f"  {name:10} {version}", flush=True)
    return found, missing


def measure(row: Row, found: list[System], workers: list[Worker], args: argparse.Namespace, scratch: Path) -> None:
    """Fills the row's figure. Starts and compilations are those of fresh processes."""
    languages = [system for system in found if system.kind == "language"]
    if row.program is None:
        parts = [Figure(name, name, "start", "s", ()) for name in ("import", "init")]
        driver.measure_start(parts, languages, args.rounds, scratch)
        row.figure = sum_of(row, parts)
        return
    program = programs.load(row.program)
    row.figure = Figure(row.name, row.title, row.group, "s", (), program=program)
    if row.group == "compile":
        driver.measure_compile(row.figure, languages, args.rounds, scratch)
    else:
        driver.measure_calls(row.figure, workers, args.size, args.rounds, args.seconds, scratch, most=COMPARED)


def sum_of(row: Row, parts: list[Figure]) -> Figure:
    total = Figure(row.name, row.title, row.group, "s", ())
    for part in parts:
        total.failures |= part.failures
    for system in parts[0].turns:
        for turns in zip(*(part.turns[system] for part in parts), strict=True):
            total.add(system, [sum(turn.samples[0] for turn in turns)], max(turn.others for turn in turns))
    return total


def describe_gpu() -> str | None:
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.max.sm", "--format=csv,noheader"]
    try:
        return subprocess.run(query, capture_output=True, text=True, timeout=30, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def publish(document: dict, folder: Path, name: str) -> None:
    """The document itself, and its table for the terminal and in Markdown."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    (folder / f"{name}.md").write_text(markdown(document))
    (folder / f"{name}.txt").write_text(terminal(document))
    print(f"\n{terminal(document)}", flush=True)


# --- tables -----------------------------------------------------------------------------------------------------------


def cells(document: dict) -> list[list[str]]:
    """A header and a line for each figure."""
    systems = list(document["systems"])
    lines = [["figure", "unit", *systems, "quadrants, before", "times that", "target", "reached"]]
    for figure in document["figures"]:
        values = figure["value"]
        mine, before = values.get("octants"), figure["before"].get("quadrants")
        times = None
        if mine and before:
            times = mine / before if figure["more_is_better"] else before / mine
        reached = {True: "yes", False: "no", None: "–"}[figure["reached"]]
        lines.append(
            [
                figure["title"],
                figure["unit"],
                *(number(values.get(system)) for system in systems),
                number(before),
                f"{times:.2f}×" if times else "–",
                figure["target"] or "–",
                reached,
            ]
        )
    return lines


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}" if value < 1000 else f"{value:.0f}"


def terminal(document: dict) -> str:
    lines = cells(document)
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    text = [f"{document['gpu'] or document['machine']['cpu']}, {document['date']}, sizes: {document['size']}", ""]
    text += ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    for figure in document["figures"]:
        text += [f"{figure['name']}: {system} FAILED: {reason}" for system, reason in figure["failures"].items()]
    text += [f"{name}: {reason}" for name, reason in document["missing"].items()]
    return "\n".join(text) + "\n"


def markdown(document: dict) -> str:
    header, *lines = cells(document)
    rule = ["---", "---", *("---:" for _ in header[2:])]
    return "\n".join(f"| {' | '.join(line)} |" for line in [header, rule, *lines]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
