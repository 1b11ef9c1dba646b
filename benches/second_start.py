"""How long programs with many kernels take to start: for the first time, again, and after one kernel was edited.

Each system runs the same program of many small kernels in fresh processes, its caches on: on an empty cache (cold), on a full one (warm), and after
one kernel was changed (edited). A time is from before the import to after the last kernel's first call; beside it stands the time that the process
had processors for, which other programs on the machine change little.

    python benches/second_start.py --octants PYTHON [--quadrants PYTHON] [--kernels 300] [--rounds 3] [--arch cuda] [--out RESULT.md]
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from typing import NamedTuple

HEAD = """\
import time
begin = time.perf_counter()
import {system} as oc
oc.init(arch=oc.{arch}, offline_cache=True, offline_cache_file_path={folder!r}, log_level="error")
imported = time.perf_counter()
Array = oc.types.ndarray(dtype=oc.f32, ndim=1)
x, y = oc.ndarray(oc.f32, (64,)), oc.ndarray(oc.f32, (64,))
"""

KERNEL = """
@oc.kernel(fastcache=True)
def k{n}(x: Array, y: Array, s: oc.f32):
    for i in range(x.shape[0]):
        v = x[i] * s + {n}.0
        if v > 3.0:
            v = oc.sqrt(v)
        y[i] = v + {constant}
"""

#: Warm starts and starts after an edit are repeated in turns for as long in each round: a difference of ten milliseconds is to be seen.
MIN_SECONDS = 4.0

TAIL = """
for kernel in [{kernels}]:
    kernel(x, y, 1.5)
end = time.perf_counter()
print("seconds", end - begin, imported - begin, time.process_time(), y[7])
"""


class Times(NamedTuple):
    """Seconds of one start."""

    whole: float
    #: Of it, import and start.
    start: float
    #: Of processors.
    processor: float

    def least(self, other: Times | None) -> Times:
        return self if other is None else Times(*map(min, self, other))


def program(system: str, arch: str, folder: str, count: int, edit: int) -> str:
    """The program, or its so-manieth edit: each differs from all others in one kernel."""
    constants = [f"{n}.{100 + edit}" if edit and n == count // 2 else f"{n}.5" for n in range(count)]
    kernels = "".join(KERNEL.format(n=n, constant=constant) for n, constant in enumerate(constants))
    names = ", ".join(f"k{n}" for n in range(count))
    return HEAD.format(system=system, arch=arch, folder=folder) + kernels + TAIL.format(kernels=names)


def run(python: str, path: pathlib.Path) -> Times:
    done = subprocess.run([python, str(path)], capture_output=True, text=True, check=False)
    found = re.search(r"seconds (\S+) (\S+) (\S+) \S+", done.stdout)
    if done.returncode != 0 or found is None:
        sys.exit(f"{python} {path} failed:\n{done.stdout[-1000:]}{done.stderr[-2000:]}")
    return Times(*(float(found[n]) for n in (1, 2, 3)))


def measure(system: str, python: str, options: argparse.Namespace, home: pathlib.Path, least: dict[str, Times]) -> None:
    """One round of a system: the least time of each kind."""
    folder, path = home / f"kept-{system}", home / f"program_{system}.py"
    shutil.rmtree(folder, ignore_errors=True)

    def start(kind: str, edit: int) -> float:
        # An edited file has another time, as a user's has.
        path.write_text(program(system, options.arch, str(folder), options.kernels, edit))
        times = run(python, path)
        least[kind] = times.least(least.get(kind))
        return times.whole

    start("cold", 0)
    spent, edit = 0.0, 0
    while spent < MIN_SECONDS:
        edit += 1
        spent += start("warm", 0) + start("edited", edit)


def table(times: dict[str, dict[str, Times]], kernels: int) -> str:
    """The result as Markdown."""
    lines = [
        f"{kernels} kernels: seconds from before the import to after the last first call, the least of all rounds.",
        "",
        "| | start | seconds | of which import and start | ms for each kernel beyond | seconds of processors | times as fast |",
        "|---|---|---|---|---|---|---|",
    ]
    for system, kinds in times.items():
        for kind, (whole, start, processor) in kinds.items():
            each = (whole - start) / kernels * 1e3
            peer = times.get("quadrants", {}).get(kind)
            both = f"{peer.whole / whole:.1f} (of processors {peer.processor / processor:.1f})" if peer else ""
            ratio = both if system == "octants" else ""
            lines.append(f"| {system} | {kind} | {whole:.3f} | {start:.3f} | {each:.3f} | {processor:.3f} | {ratio} |")
    lines.append("")
    for system, kinds in times.items():
        beyond = (kinds["edited"].whole - kinds["warm"].whole) * 1e3
        lines.append(f"After one kernel was edited, {system} takes {beyond:+.0f} ms beside a warm start.")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--octants", default=sys.executable, help="a Python that has Octants")
    parser.add_argument("--quadrants", help="a Python that has Quadrants")
    parser.add_argument("--kernels", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--arch", default="cpu")
    parser.add_argument("--out", type=pathlib.Path, help="also write the table to this file")
    options = parser.parse_args()
    os.environ.pop("OC_OFFLINE_CACHE_FILE_PATH", None)
    systems = {"octants": options.octants} | ({"quadrants": options.quadrants} if options.quadrants else {})
    times: dict[str, dict[str, Times]] = {system: {} for system in systems}
    with tempfile.TemporaryDirectory() as home:
        for _ in range(options.rounds):
            for system, python in systems.items():
                measure(system, python, options, pathlib.Path(home), times[system])
    text = table(times, options.kernels)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
