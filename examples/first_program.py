"""The first program: two jobs that keep a GPU, or all cores, busy, and pictures of what they computed.

python examples/first_program.py [folder for the pictures]
"""

import os
import sys
import time
from pathlib import Path

import galaxies
import julia

import octants as oc


def main() -> None:
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("out")
    start = time.perf_counter()
    oc.init(arch=[oc.cuda, oc.cpu])
    milliseconds = (time.perf_counter() - start) * 1e3
    where = f"{len(os.sched_getaffinity(0))} cores" if oc.cfg.arch is oc.cpu else "the GPU"
    print(f"Octants {oc.__version_str__} on {where}, ready in {milliseconds:.0f} ms")
    julia.main(out)
    galaxies.main(out)
    print(f"\nDone in {time.perf_counter() - start:.1f} s. Look into {out}/")


if __name__ == "__main__":
    main()
