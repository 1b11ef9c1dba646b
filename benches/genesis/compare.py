"""Runs scenes of the Genesis simulator on quadrants and, unmodified, on Octants, and prints a table: what differs and the times.

    python benches/genesis/compare.py                       # every scene, with arrays and with fields: hours on a small machine
    python benches/genesis/compare.py boxes franka --mode arrays
    python benches/genesis/compare.py --python PATH         # an interpreter that has Genesis already
    python benches/genesis/compare.py --octants PATH        # a folder with the package octants, in place of the newest wheel
    python benches/genesis/compare.py --results FOLDER      # keeps what each run gave; runs that are there are not done again
    python benches/genesis/compare.py --code FOLDER         # lets both keep compiled code there: quicker, but builds are not cold
    python benches/genesis/compare.py --results FOLDER --code FOLDER --again --turns 6      # steps anew; times of cold builds stay
    python benches/genesis/compare.py --results FOLDER --only none --table benches/results/genesis.md

Builds are cold unless `--code` is given: neither system keeps code on disk. Times are those of the process, so that others on the machine count little; steps are
single-threaded in both, as Genesis asks for, and made in turns. Owns the environment and the table; the scenes are in ``scenes.py``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from harness import venvs  # noqa: E402

REQUIREMENTS = ["torch", "genesis-world==1.4.5"]
NAMES = [
    "boxes", "franka", "grasp", "go2", "drone", "terrain", "envs16", "mpm", "sph", "cloth", "fem_explicit", "fem_implicit", "mpm_grad",
]  # fmt: skip
#: How far a probe may be off, absolutely where it is small and relative to it where it is large.
TOLERANCE = {"32": 1e-5, "64": 1e-6, "64-exact": 1e-12}
SYSTEMS = ["octants", "quadrants"]
MODES = {"arrays": [], "fields": ["--performance-mode"]}


class Case(NamedTuple):
    """What is run on both systems."""

    scene: str
    mode: str
    precision: str


INTRODUCTION = """# Genesis 1.4.5 on Octants and on Quadrants 1.3.3

Written by `benches/genesis/compare.py --results FOLDER --table FILE`. *Off by* is the largest difference of a probe, relative where it is
larger than one: 1e-5 is allowed in 32 bits, 1e-6 in 64, 1e-12 in 64 without fast mathematics (*exact*), which Genesis asks for. Steps are timed by the
process' own clock, on one thread: both systems have built the scene, then they step a batch in turns, and the fastest of each counts. A build is
the first step and all before it, with no compiled code kept on disk; it is left out where it was not measured. Loading meshes and robots is part of
it, some 3 s of a Franka arm's build under either system. Scenes that are not in the table were not run on both.
"""


def environment(options: argparse.Namespace) -> tuple[Path, dict[str, str]]:
    """The interpreter, and what the environment of its processes has besides."""
    added = {"QD_OFFLINE_CACHE": "0", "OC_OFFLINE_CACHE": "0"}
    if options.code:
        folder = Path(options.code).resolve()
        for prefix, name in (("QD", "quadrants"), ("OC", "octants")):
            (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
            added |= {
                f"{prefix}_OFFLINE_CACHE": "1",
                f"{prefix}_OFFLINE_CACHE_FILE_PATH": str(folder / name),
            }
    python = Path(options.python) if options.python else venvs.ensure("genesis", REQUIREMENTS)
    if options.octants:
        return python, added | {"PYTHONPATH": str(Path(options.octants).resolve())}
    wheels = sorted((venvs.REPOSITORY / "dist").glob("octants-*.whl"), key=lambda path: path.stat().st_mtime)
    if not wheels:
        raise SystemExit("there is no wheel in dist/: make one, or name a folder with --octants")
    subprocess.run([python, "-m", "pip", "install", "-q", "--force-reinstall", "--no-deps", wheels[-1]], check=True)
    return python, added


class Scene:
    """A scene built on one system, in a process of its own."""

    def __init__(self, python: Path, environment: dict[str, str], system: str, case: Case) -> None:
        command = ["run_scene.py", case.scene, *MODES[case.mode], "--precision", case.precision[:2]]
        if case.precision.endswith("exact"):
            command.append("--exact")
        if system == "octants":
            command = ["-m", "octants", "run", "--as", "quadrants", *command]
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [str(python), *command],
            cwd=HERE,
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )
        self.built = self.answer()

    def answer(self) -> dict:
        """The next result that it prints."""
        for line in self.process.stdout:
            if line.startswith("RESULT "):
                return json.loads(line[len("RESULT ") :])
        status = self.process.wait()
        self.errors.seek(0)
        lines = self.errors.read().strip().splitlines()
        raise Failed(lines[-1] if lines else f"exit status {status}")

    def steps(self, count: int) -> float:
        """How many it makes in a second."""
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        return count / self.answer()["cpu_s"]

    def close(self) -> None:
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


class Failed(Exception):
    """A scene could not be built or stepped; says why."""


def take_turns(options: argparse.Namespace, scenes: dict[str, Scene]) -> dict[str, float]:
    """The steps in a second that each system made in the fastest of its batches; each makes one in turn."""
    fastest = dict.fromkeys(scenes, 0.0)
    for _ in range(options.turns):
        for system, scene in scenes.items():
            fastest[system] = max(fastest[system], scene.steps(scene.built["timed"]))
    return fastest


def results(
    options: argparse.Namespace, python: Path, environment: dict[str, str], case: Case
) -> dict[str, dict | str | None]:
    """What each system gave: that of the folder of results, or what a run gives. A text if it failed, none if only the other one is asked for."""
    found: dict[str, dict | str | None] = {system: kept(options, case, system) for system in SYSTEMS}
    asked = [system for system in SYSTEMS if options.only in (None, system)]
    if not options.again and all(found[system] for system in asked):
        return found
    scenes = {}
    for system in asked:
        try:
            scenes[system] = Scene(python, environment, system, case)
        except Failed as failed:
            found[system] = str(failed)
    try:
        for system, speed in take_turns(options, scenes).items():
            found[system] = keep(options, case, system, scenes[system].built | {"speed": speed})
    except Failed as failed:
        found |= dict.fromkeys(scenes, str(failed))
    for scene in scenes.values():
        scene.close()
    return found


def file_of(options: argparse.Namespace, case: Case, system: str) -> Path | None:
    return Path(options.results) / f"{'-'.join(case)}-{system}.json" if options.results else None


def kept(options: argparse.Namespace, case: Case, system: str) -> dict | None:
    file = file_of(options, case, system)
    return json.loads(file.read_text(encoding="utf-8")) if file and file.exists() else None


def keep(options: argparse.Namespace, case: Case, system: str, result: dict) -> dict:
    """Keeps a result; a run with kept code leaves the time of an earlier cold build as it is."""
    before = kept(options, case, system) or {}
    if not options.code:
        result["cold_build_s"] = result["build"]["cpu_s"]
    elif "cold_build_s" in before:
        result["cold_build_s"] = before["cold_build_s"]
    if file := file_of(options, case, system):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(result), encoding="utf-8")
    return result


def difference(ours: dict, theirs: dict) -> float:
    """The largest one between the probes, relative to what is larger than one."""
    largest = 0.0
    for name, numbers in theirs.items():
        if len(numbers) != len(ours[name]):
            return float("inf")
        for a, b in zip(ours[name], numbers, strict=True):
            largest = max(largest, abs(a - b) / max(1.0, abs(b))) if a == a and b == b else float("inf")
    return largest


NOTES = "\n## Notes\n"
NOT_COMPARED = "not run on both"
HEADINGS = ["scene", "mode", "bits", "off by", "", "steps/s", "quadrants", "ratio", "build s", "quadrants", "ratio"]


def cells(case: Case, ours: dict | str | None, theirs: dict | str | None) -> list[str]:
    """A line of the table; builds are in it where both were cold."""
    begin = [case.scene, case.mode, case.precision]
    failed = [f"{name}: {one}" for name, one in (("octants", ours), ("quadrants", theirs)) if isinstance(one, str)]
    if failed:
        return [*begin, "", "FAILED: " + "; ".join(failed)]
    shown = [f"{one['speed']:.1f}" if isinstance(one, dict) else "" for one in (ours, theirs)]
    if not isinstance(ours, dict) or not isinstance(theirs, dict):
        return [*begin, "", NOT_COMPARED, *shown]
    off = difference(ours["probes"], theirs["probes"])
    verdict = "same" if off <= TOLERANCE[case.precision] else "DIFFERS"
    row = [*begin, f"{off:.1e}", verdict, *shown, f"{ours['speed'] / theirs['speed']:.2f}×"]
    if all("cold_build_s" in one for one in (ours, theirs)):
        builds = [one["cold_build_s"] for one in (ours, theirs)]
        row += [f"{builds[0]:.1f}", f"{builds[1]:.1f}", f"{builds[1] / builds[0]:.1f}×"]
    return row


def write_table(file: Path, table: str) -> None:
    """Writes the table in front of the notes that the file has already."""
    _, heading, notes = (file.read_text(encoding="utf-8") if file.exists() else "").partition(NOTES)
    file.write_text(f"{INTRODUCTION}\n{table}\n{heading}{notes}", encoding="utf-8")


def text(row: list[str]) -> str:
    widths = [13, 7, 4, 8, 8, 10, 10, 7, 8, 9, 6]
    return " ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=False)).rstrip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", nargs="*", help=f"of {', '.join(NAMES)}; all by default")
    parser.add_argument("--mode", choices=MODES, action="append", help="arrays or fields; both by default")
    parser.add_argument(
        "--precision", choices=TOLERANCE, action="append", help="32 by default; exact is without fast mathematics"
    )
    parser.add_argument("--python", help="an interpreter that has Genesis")
    parser.add_argument("--octants", help="a folder with the package octants")
    parser.add_argument(
        "--only",
        choices=["octants", "quadrants", "none"],
        help="runs one system, or none; other results are those that are kept",
    )
    parser.add_argument("--results", help="a folder for what each run gave, as JSON")
    parser.add_argument("--code", help="a folder where both keep compiled code")
    parser.add_argument("--turns", type=int, default=3, help="how often each system steps a batch; the fastest counts")
    parser.add_argument("--again", action="store_true", help="runs also what the folder of results has")
    parser.add_argument("--table", help="a file for the table, in Markdown")
    options = parser.parse_args()
    unknown = sorted(set(options.scenes) - set(NAMES))
    if unknown:
        parser.error(f"there is no scene {', '.join(unknown)}")
    python, added = environment(options)
    print(text(HEADINGS))
    rows = []
    for precision in options.precision or ["32"]:
        for scene in options.scenes or NAMES:
            for mode in options.mode or MODES:
                case = Case(scene, mode, precision)
                ours, theirs = results(options, python, added, case).values()
                if ours is None and theirs is None:
                    continue
                rows.append(cells(case, ours, theirs))
                print(text(rows[-1]), flush=True)
    if options.table:
        compared = [row for row in rows if NOT_COMPARED not in row]
        lines = [HEADINGS, ["---"] * len(HEADINGS), *(row + [""] * (len(HEADINGS) - len(row)) for row in compared)]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        write_table(Path(options.table), table)
    return int(any("same" not in row for row in rows))


if __name__ == "__main__":
    sys.exit(main())
