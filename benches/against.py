"""Holds this build against an older commit: `python benches/against.py REVISION`, or `make against REV=REVISION`.

Builds the older commit's wheel in a clone of its own, runs the programs of the benchmarks with both builds in turns, and reports what got slower by
more than noise. The programs are those of the working tree: one that the older commit cannot run is named and left out. The exit status is 1 if
anything got slower, or fails now.

Run it with the interpreter of `.venv` (numpy to measure, maturin to build).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness import builds, regressions, report
from harness.driver import chosen
from harness.figures import all_figures
from harness.programs import BadProgram, load_all
from harness.regressions import NEWER, OLDER, Comparison
from harness.systems import System
from harness.venvs import Unavailable


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benches/against.py", description=__doc__.splitlines()[0])
    parser.add_argument("revision", help="the older commit: a hash, a tag, HEAD~20")
    parser.add_argument("--only", action="append", metavar="NAME", help="only figures whose name contains NAME")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--octants", type=Path, help="a folder that the newer build is imported from (newest wheel)")
    parser.add_argument("--build", action="store_true", help="only build the older commit's wheel")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    commit, described = builds.commit_of(args.revision)
    print(f"older: {described}", flush=True)
    older = builds.of_commit(commit)
    if args.build:
        print(f"its package is in {older}")
        return 0
    size = "quick" if args.quick else "full"
    figures = chosen(all_figures(load_all(), size), args.only)
    with tempfile.TemporaryDirectory(prefix="octants-against-") as scratch:
        newer = args.octants or builds.of_wheel(builds.newest_wheel(), Path(scratch) / "newer")
        print(f"newer: {args.octants or builds.newest_wheel().name}", flush=True)
        systems = {build: system(build, folder) for build, folder in ((OLDER, older), (NEWER, newer))}
        print("\n".join(report.aligned([HEADER])))
        found = regressions.compare(figures, systems, size, Path(scratch), tell)
    slower = [one for one in found if one.slower()]
    broken = [one for one in found if one.broken()]
    for one in slower:
        print(f"slower: {one.figure.name}, {one.ratio():.3f} times the older time (noise {one.noise():.1%})")
    for one in broken:
        print(f"fails now: {one.figure.name}: {one.failures[NEWER]}")
    if not slower and not broken:
        print("nothing got slower by more than noise")
    return 1 if slower or broken else 0


def system(build: str, folder: Path) -> System:
    """A build of octants, run by this interpreter."""
    return System(
        build, "language", Path(sys.executable), "", str(folder), path=str(folder.resolve()), module="octants"
    )


HEADER = [f"{'figure':24}", f"{'older':>9}", f"{'newer':>9}", "ratio", "noise", ""]


def tell(one: Comparison) -> None:
    """The row of a figure, as soon as it is measured."""
    cells = [one.figure.name.ljust(24)]
    for build in (OLDER, NEWER):
        text = "FAILED" if build in one.failures else report.quantity(one.median(build), one.figure.unit)
        cells.append(text.rjust(9))
    if one.failures:
        reason = f"{NEWER}: {one.failures[NEWER]}" if NEWER in one.failures else f"{OLDER}: {one.failures[OLDER]}"
        cells += ["     ", "     ", reason]
    else:
        word = (
            "SLOWER" if one.slower() else "faster" if one.faster() else "measured again" if one.measured_again else ""
        )
        cells += [f"{one.ratio():5.3f}", f"{one.noise():5.1%}", word]
    print("\n".join(report.aligned([cells])), flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted")
    except (Unavailable, BadProgram, ValueError) as reason:
        sys.exit(f"cannot run: {reason}")
