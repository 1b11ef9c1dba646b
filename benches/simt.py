"""Blocks, subgroups and tiles: `python benches/simt.py [--peer FOLDER] [--warp FOLDER]`.

Programs that are written for blocks of threads, at sizes that fill a GPU, under Octants and, where they can be imported, quadrants (the same text), torch (the vendor's
libraries) and warp. Each system has a process of its own; in every round each of them measures a program, one after the other. A figure is the median of the rounds'. What
a program gives is compared with numpy's in f64 before it is measured and, for other data, behind it; its results are overwritten before.

    python benches/simt.py                           every row on the GPU, into benches/results/simt_cuda.{md,json}
    python benches/simt.py --peer FOLDER             quadrants too, from a folder that its wheel was unpacked into; --warp FOLDER likewise
    python benches/simt.py --only cholesky           rows whose name contains a word
    python benches/simt.py --arch cpu --size quick   on a CPU: beside plain loops that compute the same, and the interpreter

Needs Python, numpy and an importable octants, and no network.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

BENCHES = Path(__file__).resolve().parent
sys.path.insert(0, str(BENCHES))

from blocks.rows import COMPILED, FASTER, ROWS, UNITS, Row, Target  # noqa: E402
from harness import machine  # noqa: E402

#: How long a process may take to answer, in seconds.
LIMIT = 300.0

#: What is measured on a GPU, and on a CPU, where the peers have no blocks.
SYSTEMS = {"cuda": "octants,quadrants,torch,warp", "cpu": "octants,plain,reference"}


class Failed(Exception):
    """No figure; the text says why."""


class System:
    """A system and its process, which is started when it is first asked, and again after it ended."""

    def __init__(self, name: str, arch: str, folder: str | None, scratch: Path) -> None:
        self.name, self.arch = name, arch
        self.folders = [str(BENCHES), *filter(None, [folder, os.environ.get("PYTHONPATH")])]
        self.log = scratch / f"{name}.log"
        self.caches = str(scratch / "caches")
        self.process: subprocess.Popen[bytes] | None = None

    def command(self, *extra: str) -> dict[str, Any]:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(self.folders), "XDG_CACHE_HOME": self.caches}
        environment |= {"WARP_CACHE_PATH": f"{self.caches}/warp"}
        return {"args": [sys.executable, "-m", "blocks.worker", self.name, self.arch, *extra], "env": environment}

    def ask(self, **request: Any) -> dict[str, Any]:
        if self.process is None:
            with self.log.open("ab") as log:
                self.process = subprocess.Popen(
                    **self.command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
                )
        process = self.process
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write((json.dumps(request) + "\n").encode())
            process.stdin.flush()
        except BrokenPipeError:
            pass
        ready, _, _ = select.select([process.stdout], [], [], LIMIT)
        line = process.stdout.readline() if ready else b""
        if not line:
            process.kill()
            self.process = None
            raise Failed(f"ended with status {process.wait()}: {self.last_words()}" if ready else "no answer in time")
        answer = json.loads(line)
        if not answer.pop("ok"):
            raise Failed(answer["error"])
        return answer

    def compile_seconds(self) -> float:
        done = subprocess.run(**self.command("compile"), capture_output=True, text=True, timeout=LIMIT)
        if done.returncode:
            raise Failed(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no message")
        return float(done.stdout)

    def last_words(self) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "nothing was said"

    def stop(self) -> None:
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", default="cuda")
    parser.add_argument("--size", default="gpu", help="gpu or quick; the interpreter always has tiny ones")
    parser.add_argument("--systems", metavar="A,B")
    parser.add_argument("--peer", metavar="FOLDER", help="a folder that quadrants is imported from")
    parser.add_argument("--warp", metavar="FOLDER", help="a folder that warp is imported from")
    parser.add_argument("--only", action="append", metavar="NAME", help="rows whose name contains this")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2, help="length of a turn")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no row after that time")
    parser.add_argument("--out", type=Path, default=BENCHES / "results", metavar="FOLDER")
    parser.add_argument("--name", help="name of the result files")
    parser.add_argument("--list", action="store_true", help="list the rows and leave")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    names = [*(row.name for row in ROWS), COMPILED]
    wanted = [name for name in names if not args.only or any(word in name for word in args.only)]
    if args.list or not wanted:
        print("\n".join(names))
        return 0 if args.list else 1
    folders = {"quadrants": args.peer, "warp": args.warp}
    begin = time.monotonic()
    results: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="octants-simt-") as scratch:
        chosen = (args.systems or SYSTEMS.get(args.arch, SYSTEMS["cpu"])).split(",")
        systems = [System(name, args.arch, folders.get(name), Path(scratch)) for name in chosen]
        missing = {system.name: why for system in systems if (why := absent(system))}
        systems = [system for system in systems if system.name not in missing]
        for name, why in missing.items():
            print(f"  {name} skipped: {why}", flush=True)
        try:
            for name in wanted:
                if time.monotonic() - begin > 60 * args.minutes:
                    missing[name] = "not begun in time"
                    continue
                found = measure_compiling(systems, args) if name == COMPILED else measure(name, systems, args)
                results[name] = found
                said = [f"{system} {number(value)}" for system, value in found["value"].items()]
                said += [f"{system} FAILED: {why.splitlines()[0]}" for system, why in found["failures"].items()]
                print(f"  {name:18} {'  '.join(said)}  {found['unit']}", flush=True)
        finally:
            for system in systems:
                system.stop()
    for name, found in results.items():
        found["targets"] = reached(name, results, args.arch)
    document = {
        "machine": machine.describe(),
        "gpu": describe_gpu() if args.arch == "cuda" else None,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "seconds": round(time.monotonic() - begin),
        "arch": args.arch,
        "size": args.size,
        "rounds": args.rounds,
        "systems": [system.name for system in systems],
        "missing": missing,
        "rows": results,
    }
    name = args.name or f"simt_{args.arch}"
    if args.only and not args.name:
        name = "partial"
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / f"{name}.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    (args.out / f"{name}.md").write_text(table(document))
    print(f"\n{table(document)}", flush=True)
    return 1 if any("octants" in found["failures"] for found in results.values()) else 0


def absent(system: System) -> str | None:
    """Why a system cannot be imported."""
    module = {"plain": "octants", "reference": "octants"}.get(system.name, system.name)
    command = system.command()
    command["args"] = [sys.executable, "-c", f"import {module}"]
    done = subprocess.run(**command, capture_output=True, text=True, timeout=LIMIT)
    return (done.stderr.strip() or "no message").splitlines()[-1] if done.returncode else None


def measure(name: str, systems: list[System], args: argparse.Namespace) -> dict[str, Any]:
    """A row's rates in all systems, which take turns."""
    row = next(row for row in ROWS if row.name == name)
    seed = int.from_bytes(os.urandom(4), "little")
    failures: dict[str, str] = {}
    turns: dict[str, list[float]] = {}
    loaded: list[System] = []

    def attempt(system: System, **request: Any) -> dict[str, Any] | None:
        try:
            return system.ask(**request)
        except Failed as reason:
            # That a system has no such program is no failure.
            if "LookupError" not in str(reason) and "KeyError" not in str(reason):
                failures[system.name] = str(reason)
            turns.pop(system.name, None)
            if system in loaded:
                loaded.remove(system)
            return None

    for system in systems:
        if attempt(system, do="load", row=name, size=size_of(system, args), seed=seed) is not None:
            loaded.append(system)
    for _ in range(args.rounds):
        for system in list(loaded):
            if (answer := attempt(system, do="measure", seconds=args.seconds)) is not None:
                turns.setdefault(system.name, []).append(answer["seconds"])
    for system in list(loaded):
        attempt(system, do="check", seed=seed + 1)
    for system in list(loaded):
        attempt(system, do="drop")
    seconds = {system: statistics.median(taken) for system, taken in turns.items()}
    sizes = {system.name: row.sizes[size_of(system, args)] for system in systems}
    value = {system: rate(row, sizes[system], taken) for system, taken in seconds.items()}
    return {
        "title": row.title,
        "unit": row.unit,
        "size": row.sizes[args.size],
        "value": value,
        "seconds": seconds,
        "turns": turns,
        "failures": failures,
    }


def size_of(system: System, args: argparse.Namespace) -> str:
    return "tiny" if system.name == "reference" else args.size


def rate(row: Row, size: dict[str, int], seconds: float) -> float:
    return row.amount(**size) / UNITS[row.unit] / seconds


def measure_compiling(systems: list[System], args: argparse.Namespace) -> dict[str, Any]:
    turns: dict[str, list[float]] = {}
    failures: dict[str, str] = {}
    for _ in range(args.rounds):
        for system in systems:
            if system.name not in ("octants", "quadrants") or system.name in failures:
                continue
            try:
                turns.setdefault(system.name, []).append(system.compile_seconds())
            except (Failed, subprocess.TimeoutExpired) as reason:
                failures[system.name] = str(reason)
                turns.pop(system.name, None)
    seconds = {system: statistics.median(taken) for system, taken in turns.items()}
    return {
        "title": "to compile a kernel with eight shared arrays",
        "unit": "s",
        "size": {},
        "value": seconds,
        "seconds": seconds,
        "turns": turns,
        "failures": failures,
    }


def reached(name: str, results: dict[str, dict[str, Any]], arch: str) -> list[dict[str, Any]]:
    """What was asked of Octants in a row, how many times the others' that is, and whether it is enough."""
    value = results[name]["value"]
    mine = value.get("octants")
    if name == COMPILED:
        other = value.get("quadrants")
        times = other / mine if mine and other else None
        text = f"{FASTER:g}× faster than quadrants"
        return [{"target": text, "times": times, "reached": None if times is None else times >= FASTER}]
    row = next(row for row in ROWS if row.name == name)
    targets = row.cpu_targets if arch == "cpu" else row.targets
    return [{"target": str(target)} | against(target, mine, value, results) for target in targets]


def against(target: Target, mine: float | None, value: dict[str, float], results: dict[str, Any]) -> dict[str, Any]:
    others = results.get(target.row, {}).get("value", {}) if target.row else value
    best = max((others[system] for system in target.systems if system in others), default=None)
    times = mine / best if mine and best else None
    return {"times": times, "reached": None if times is None else times >= target.times}


def describe_gpu() -> str | None:
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.max.sm", "--format=csv,noheader"]
    try:
        return subprocess.run(query, capture_output=True, text=True, timeout=30, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def table(document: dict[str, Any]) -> str:
    """The figures in Markdown."""
    systems = document["systems"]
    where = "a GPU" if document["arch"] == "cuda" else f"the CPU, {document['machine']['cores']} cores"
    lines = [f"# Blocks, subgroups and tiles on {where}", ""]
    lines += [f"Medians of {document['rounds']} rounds, sizes: {document['size']}. By `benches/simt.py`.", ""]
    lines += [f"| program | unit | {' | '.join(systems)} | times that | asked | reached |"]
    lines += [f"|---|---|{'---:|' * len(systems)}---:|---|---|"]
    for found in document["rows"].values():
        values = [number(found["value"].get(system)) for system in systems]
        values = [
            "FAILED" if system in found["failures"] else value for system, value in zip(systems, values, strict=True)
        ]
        asked = found["targets"] or [{"target": "–", "times": None, "reached": None}]
        cells = [
            "<br>".join(f"{one['times']:.2f}×" if one["times"] else "–" for one in asked),
            "<br>".join(one["target"] for one in asked),
            "<br>".join({True: "yes", False: "no", None: "–"}[one["reached"]] for one in asked),
        ]
        title = found["title"]
        if document["size"] != "gpu" and found["size"]:
            title += f" (here {', '.join(f'{key} = {value:,}' for key, value in found['size'].items())})"
        lines.append(f"| {' | '.join([title, found['unit'], *values, *cells])} |")
    for name, found in document["rows"].items():
        for system, why in found["failures"].items():
            lines += ["", f"{name}: {system} failed: {why.splitlines()[0]}"]
    if document["missing"]:
        lines += ["", *(f"{name}: {why}" for name, why in document["missing"].items())]
    return "\n".join(lines).rstrip() + "\n"


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}" if value < 1000 else f"{value:.0f}"


if __name__ == "__main__":
    sys.exit(main())
