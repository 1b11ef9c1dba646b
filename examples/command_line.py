"""What the programs of this folder are told on the command line."""

from __future__ import annotations

import argparse
from pathlib import Path

import octants as oc


def options(about: str, smallest: int, session: dict | None = None, **defaults: int) -> argparse.Namespace:
    """Reads `--out`, `--arch` and a whole number for each of `defaults`, then starts Octants.

    `about` is the program's docstring, whose first line becomes the help's; `smallest` is the least `--size`; `session` are options
    of `oc.init`.
    """
    parser = argparse.ArgumentParser(
        description=about.split("\n", 1)[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=value, metavar="N", help=HELP[name])
    parser.add_argument("--out", type=Path, default=Path("out"), metavar="DIR", help="folder for the pictures")
    parser.add_argument("--arch", default="cpu", metavar="NAME", help="where kernels run")
    chosen = parser.parse_args()
    for name in defaults:
        least = smallest if name == "size" else 1
        if getattr(chosen, name) < least:
            parser.error(f"--{name} must be at least {least}")
    if not hasattr(oc, chosen.arch):
        parser.error(f"there is no arch {chosen.arch!r}")
    oc.init(arch=getattr(oc, chosen.arch), **(session or {}))
    return chosen


HELP = {
    "frames": "pictures of the animation",
    "steps": "steps of the simulation from one picture to the next",
    "iterations": "steps of the optimisation",
    "size": "resolution: cells, nodes or points along one side",
}
