"""Runs tests, random programs, benchmarks and checkers on a machine with an NVIDIA GPU, and leaves what they found in one folder.

    python scripts/run_gpu.py OUT                                   everything
    python scripts/run_gpu.py OUT tests generator=4000 bench        some parts; the number is how many programs
    python scripts/run_gpu.py OUT tests=test_views.py,streams sanitizer=memcheck accuracy      a file and a folder of tests

It needs Python, numpy and pytest, and no network. Each part ends by its limit (`--minutes tests=5`), and what was found by then is kept:

    OUT/gpu.txt, OUT/gpu.json   what came of each part        OUT/bench.json   the figures, as benches/results/gpu.json
    OUT/PART.log                what a part printed             OUT/simt.json    those of benches/simt.py
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

#: Minutes that each part may take.
MINUTES = {
    "tests": 8.0,
    "generator": 7.0,
    "blocks": 4.0,
    "schedules": 4.0,
    "gradients": 5.0,
    "programs": 5.0,
    "bench": 6.0,
    "simt": 6.0,
    "streams": 3.0,
    "sanitizer": 9.0,
    "accuracy": 3.0,
}

#: Programs of the generator, unless the part says how many: 16 cores beside an H200 check about 60 a second.
PROGRAMS = 20_000

#: Random programs for blocks of threads, likewise.
BLOCKS = 2000

#: Random schedules of streams and events, likewise.
SCHEDULES = 5000

#: Random programs whose derivatives are compared, likewise.
GRADIENTS = 2000

#: Random whole programs under a tape, likewise.
TAPES = 500

#: compute-sanitizer's tools that the core of the suite is run under.
TOOLS = ("memcheck", "racecheck", "initcheck")

#: Tests that take all of the device's memory, or break its context: others would fail beside them. And those that look at what the whole device has left, and at who
#: waits for half a second of work: they would fail beside others.
ALONE = ("test_cuda.py", "test_memory_order.py")

NOT_INSTALLED = "compute-sanitizer is not installed"

#: Without the plugins of a developer's machine: neither a time limit of pytest's nor other files of configuration.
PYTEST = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(ROOT), "-p", "no:cacheprovider"]


@dataclass
class Part:
    """One part of a run: where its log goes, when it must end, and what it was told."""

    name: str
    argument: str
    out: Path
    deadline: float
    jobs: int
    device: str
    result: dict[str, Any] = field(default_factory=dict)

    def left(self) -> float:
        return max(0.1, self.deadline - time.monotonic())

    def run(self, command: list[str], limit: float | None = None) -> tuple[int | str, str]:
        """A command's exit status, or why there is none, and what it printed."""
        with tempfile.TemporaryFile("w+") as printed:
            process = subprocess.Popen(
                command, cwd=ROOT, stdout=printed, stderr=subprocess.STDOUT, start_new_session=True
            )
            try:
                status: int | str = process.wait(timeout=min(limit or self.left(), self.left()))
            except subprocess.TimeoutExpired:
                # The process leads a group of its own: what it started ends with it.
                os.killpg(process.pid, 9)
                process.wait()
                status = "no end in time"
            printed.seek(0)
            return status, printed.read()

    def log(self, text: str) -> None:
        with (self.out / f"{self.name}.log").open("a") as file:
            file.write(text if text.endswith("\n") else text + "\n")


def tests(part: Part) -> None:
    """The behaviour tests of the device, a process for each file."""
    paths = test_files(part.argument.split(",")) if part.argument else sorted((ROOT / "tests").glob("**/test_*.py"))
    # Long ones first, so that none is left alone at the end.
    paths.sort(key=lambda path: -path.stat().st_size)
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    failed: list[str] = []

    def one(path: Path) -> None:
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.xml"
            command = [*PYTEST, "--devices", part.device, "--tb=short", f"--junitxml={report}", str(path)]
            status, printed = part.run(command)
            name = path.relative_to(ROOT / "tests").as_posix()
            suite = ElementTree.parse(report).getroot().find("testsuite") if report.exists() else None
            if suite is None:
                failed.append(f"{name}: {status}")
                part.log(f"==== {name}: {status}\n{printed}")
                return
            total, errors, failures, skipped = (
                int(suite.attrib[key]) for key in ("tests", "errors", "failures", "skipped")
            )
            counts["passed"] += total - errors - failures - skipped
            counts["failed"] += errors + failures
            counts["skipped"] += skipped
            failed.extend(re.findall(r"^(?:FAILED|ERROR) (\S+)", printed, re.MULTILINE))
            if errors or failures or status not in (0, 5):
                part.log(f"==== {name}: {status}\n{printed}")

    alone = [path for path in paths if path.name in ALONE]
    with concurrent.futures.ThreadPoolExecutor(part.jobs) as pool:
        list(pool.map(one, (path for path in paths if path not in alone)))
    for path in alone:
        one(path)
    part.result |= counts | {"failures": sorted(failed)}


def test_files(names: list[str]) -> list[Path]:
    """Test files by their names alone, or all of a folder's by its name."""
    found = [
        sorted((ROOT / "tests").glob(f"**/{name}" if name.endswith(".py") else f"{name}/**/test_*.py"))
        for name in names
    ]
    if missing := [name for name, paths in zip(names, found, strict=True) if not paths]:
        sys.exit(f"no tests are called {', '.join(missing)}")
    return [path for paths in found for path in paths]


def generator(part: Part) -> None:
    """Random programs: the GPU against Python and the interpreter."""
    random_programs(part, "tests/generators/generator.py", PROGRAMS)


def blocks(part: Part) -> None:
    """Random programs for blocks of threads: the GPU against a model and the interpreter."""
    random_programs(part, "tests/generators/simt_generator.py", BLOCKS)


def gradients(part: Part) -> None:
    """Derivatives of random programs: reverse mode, forward mode and differences."""
    random_programs(part, "tests/generators/gradient_generator.py", GRADIENTS)


def programs(part: Part) -> None:
    """Gradients of random whole programs against differences of the same in Python."""
    random_programs(part, "tests/generators/tape_generator.py", TAPES)


def random_programs(part: Part, script: str, usual: int) -> None:
    count = int(part.argument or usual)
    # Nearly all of the time is the host's, for compiling: a process for each core.
    jobs = str(os.cpu_count() or part.jobs)
    command = [sys.executable, script, "0", str(count), "--device", part.device, "--jobs", jobs]
    # The last batches need time to end, too: about a minute.
    status, printed = part.run([*command, "--minutes", str(max(0.5 * part.left(), part.left() - 60) / 60)])
    part.log(printed)
    part.result |= {"status": status, "summary": printed.strip().splitlines()[-1] if printed.strip() else ""}


def schedules(part: Part) -> None:
    """Random schedules of streams, events and forks against their actions in order."""
    count = int(part.argument or SCHEDULES)
    command = [sys.executable, "tests/generators/schedules.py", "0", str(count), "--device", part.device]
    command += ["--jobs", str(part.jobs)]
    status, printed = part.run(command)
    part.log(printed)
    part.result |= {"status": status, "summary": printed.strip().splitlines()[-1] if printed.strip() else ""}


def streams(part: Part) -> None:
    """What streams and branches give and cost."""
    command = [sys.executable, "benches/streams.py", "--arch", part.device, "--json", str(part.out / "streams.json")]
    peer = os.environ.get("PEER")
    status, printed = part.run([*command, *(["--peer", peer] if peer else [])])
    part.log(printed)
    part.result |= {"status": status, "table": printed}


def bench(part: Part) -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "benches/gpu.py", "--arch", part.device, "--out", folder]
        command += ["--minutes", str(0.8 * part.left() / 60), *([] if part.device == "cuda" else ["--size", "quick"])]
        peer = os.environ.get("PEER")
        only = [word for name in filter(None, part.argument.split(",")) for word in ("--only", name)]
        status, printed = part.run([*command, *(["--peer", peer] if peer else []), *only])
        part.log(printed)
        part.result |= {"status": status}
        table = Path(folder) / "gpu.txt"
        if table.exists():
            shutil.copy(Path(folder) / "gpu.json", part.out / "bench.json")
            part.result["table"] = table.read_text()


def simt(part: Part) -> None:
    """Programs for blocks of threads, beside the peers that are here: their folders are $PEER and $WARP."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "benches/simt.py", "--arch", part.device, "--out", folder, "--name", "simt"]
        command += ["--minutes", str(0.7 * part.left() / 60), *([] if part.device == "cuda" else ["--size", "quick"])]
        for option in ("peer", "warp"):
            if path := os.environ.get(option.upper()):
                command += [f"--{option}", path]
        for name in filter(None, part.argument.split(",")):
            command += ["--only", name]
        status, printed = part.run(command)
        part.log(printed)
        part.result |= {"status": status}
        table = Path(folder) / "simt.md"
        if table.exists():
            shutil.copy(Path(folder) / "simt.json", part.out / "simt.json")
            shutil.copy(table, part.out / "simt.md")
            part.result["table"] = table.read_text()


def sanitizer(part: Part) -> None:
    """The core of the suite under compute-sanitizer, a tool at a time."""
    found = shutil.which("compute-sanitizer")
    if found is None:
        part.result |= {"status": NOT_INSTALLED}
        return
    tools = part.argument.split(",") if part.argument else TOOLS
    for at, tool in enumerate(tools):
        command = [found, "--tool", tool, "--error-exitcode", "86", "--print-limit", "20"]
        core = [*PYTEST, "--devices", part.device, "--tb=line", "-m", "sanitizer_core", "tests"]
        status, printed = part.run([*command, *core], limit=part.left() / (len(tools) - at))
        part.log(f"==== {tool}: {status}\n{printed}")
        summaries = re.findall(r"=+ ((?:ERROR|RACECHECK) SUMMARY: .*)", printed)
        counted = re.findall(r"\d+ (?:passed|failed).*", printed)
        part.result[tool] = {"status": status, "errors": summaries[-1:], "tests": counted[-1:]}


def accuracy(part: Part) -> None:
    """Errors of the functions of reals."""
    status, printed = part.run(
        [sys.executable, "tests/arithmetic/measure_accuracy.py", "--arch", part.device, "--samples", "200000"]
    )
    part.log(printed)
    part.result |= {"status": status, "table": printed}


PARTS: dict[str, Callable[[Part], None]] = {
    "tests": tests,
    "generator": generator,
    "blocks": blocks,
    "schedules": schedules,
    "gradients": gradients,
    "programs": programs,
    "bench": bench,
    "simt": simt,
    "streams": streams,
    "sanitizer": sanitizer,
    "accuracy": accuracy,
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs tests and benchmarks on a GPU.")
    parser.add_argument("out", type=Path, help="folder for what was found")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}, each with =ARGUMENT")
    parser.add_argument("--minutes", action="append", default=[], metavar="PART=M", help="the limit of a part")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) * 3 // 4), help="processes at a time")
    parser.add_argument("--device", default="cuda", help="another device, to try this out without a GPU")
    given = parser.parse_args()
    minutes = MINUTES | {name: float(limit) for name, limit in (one.split("=") for one in given.minutes)}
    chosen = [one.partition("=") for one in given.parts] or [(name, "", "") for name in PARTS]
    if unknown := [name for name, _, _ in chosen if name not in PARTS]:
        parser.error(f"no part is called {', '.join(unknown)}; there are {', '.join(PARTS)}")
    given.out.mkdir(parents=True, exist_ok=True)
    out = given.out.resolve()
    document: dict[str, Any] = {"octants": version(given.device), "device": given.device, "parts": {}}
    print(f"octants {document['octants']} on {given.device}", flush=True)
    if document["octants"].startswith("FAILED"):
        (out / "gpu.txt").write_text(f"{document['octants']}\n")
        return 1
    for name, _, argument in chosen:
        begin = time.monotonic()
        part = Part(name, argument, out, begin + 60 * minutes[name], given.jobs, given.device)
        print(f"== {name}", flush=True)
        PARTS[name](part)
        part.result["seconds"] = round(time.monotonic() - begin)
        document["parts"][name] = part.result
        # After each part, so that what ends the whole run leaves what was found.
        (out / "gpu.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
        with (out / "gpu.txt").open("a") as file:
            file.write(told(name, part.result))
        print(told(name, part.result), flush=True)
    return 1 if any(bad(result) for result in document["parts"].values()) else 0


def bad(result: dict[str, Any]) -> bool:
    """Whether something failed, or did not end. What is not installed did not fail."""
    statuses = [result.get("status", 0), *(tool["status"] for tool in result.values() if isinstance(tool, dict))]
    return bool(result.get("failures")) or any(status not in (0, NOT_INSTALLED) for status in statuses)


def told(name: str, result: dict[str, Any]) -> str:
    lines = [f"== {name} ({result['seconds']} s)"]
    for key, value in result.items():
        if key == "failures":
            lines += [f"  {one}" for one in value[:200]]
        elif key == "table":
            lines += value.rstrip().splitlines()
        elif key != "seconds":
            lines.append(f"  {key}: {value}")
    return "\n".join(lines) + "\n\n"


def version(device: str) -> str:
    """Octants' version, or why it cannot open the device."""
    code = f"import octants as oc; oc.init(arch=oc.{device}, enable_fallback=False); print(oc.__version_str__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    return (
        done.stdout.strip().splitlines()[-1]
        if done.returncode == 0
        else f"FAILED: {done.stderr.strip().splitlines()[-1]}"
    )


if __name__ == "__main__":
    sys.exit(main())
