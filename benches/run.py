"""Runs the side-by-side benchmarks: `python benches/run.py --help`.

Owns the command line. Everything it starts with is the standard library: it makes the driver's own environment
(numpy, matplotlib) and continues inside it, so any Python 3.10 or newer can start it.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

BENCHES = Path(__file__).resolve().parent
sys.path.insert(0, str(BENCHES))

from harness import venvs  # noqa: E402


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benches/run.py",
        description="The same programs under octants, quadrants, taichi, numba and C, interleaved in one run.",
    )
    parser.add_argument(
        "--quick", action="store_true", help="small sizes and few rounds: does it run, roughly how fast"
    )
    parser.add_argument(
        "--only",
        action="append",
        metavar="NAME",
        help="only figures whose name contains NAME (may be repeated, or a comma-separated list)",
    )
    parser.add_argument("--systems", metavar="A,B", help="only these systems, e.g. octants,quadrants,c")
    parser.add_argument("--rounds", type=int, metavar="N", help="turns that each system gets per figure (7, quick: 3)")
    parser.add_argument("--octants-python", metavar="PATH", help="interpreter that has octants installed")
    parser.add_argument("--name", help="file name in benches/results (default: cpu, or partial for a partial run)")
    parser.add_argument("--list", action="store_true", help="list the figures and leave")
    parser.add_argument("--plot", metavar="JSON", help="only draw the plot and the table of an earlier result")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    if not venvs.inside("driver"):
        python = venvs.ensure("driver", ["numpy", "matplotlib"])
        os.execv(python, [str(python), str(Path(__file__).resolve()), *sys.argv[1:]])
    from harness import driver

    return driver.main(args)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted")
    except venvs.Unavailable as reason:
        sys.exit(f"cannot run: {reason}")
