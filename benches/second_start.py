"""How long programs with many kernels take to start: for the first time, again, and after one kernel was edited.

Each system runs the same program of many small kernels in fresh processes, its caches on: on an empty cache (cold), on a full one (warm), and after
one kernel was changed (edited). A time is from before the import to after the last kernel's first call.

    python benches/second_start.py --octants PYTHON [--quadrants PYTHON] [--kernels 300] [--rounds 3]
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HEAD = """\
import time
begin = time.perf_counter()
import {system} as oc
oc.init(arch=oc.cpu, offline_cache=True, offline_cache_file_path={folder!r}, log_level="error")
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

TAIL = """
for kernel in [{kernels}]:
    kernel(x, y, 1.5)
end = time.perf_counter()
print("seconds", end - begin, imported - begin, y[7])
"""


def program(system: str, folder: str, count: int, edited: bool) -> str:
    constants = [f"{n}.25" if edited and n == count // 2 else f"{n}.5" for n in range(count)]
    kernels = "".join(KERNEL.format(n=n, constant=constant) for n, constant in enumerate(constants))
    names = ", ".join(f"k{n}" for n in range(count))
    return HEAD.format(system=system, folder=folder) + kernels + TAIL.format(kernels=names)


def run(python: str, path: pathlib.Path) -> tuple[float, float, str]:
    """Seconds of the whole and of import and start, and what was computed."""
    done = subprocess.run([python, str(path)], capture_output=True, text=True, check=False)
    found = re.search(r"seconds (\S+) (\S+) (\S+)", done.stdout)
    if done.returncode != 0 or found is None:
        sys.exit(f"{python} {path} failed:\n{done.stdout[-1000:]}{done.stderr[-2000:]}")
    return float(found[1]), float(found[2]), found[3]


def measure(system: str, python: str, count: int, rounds: int, home: pathlib.Path) -> dict[str, tuple[float, float]]:
    """The least time of each kind, and that of import and start."""
    folder, path = home / f"kept-{system}", home / f"program_{system}.py"
    least: dict[str, tuple[float, float]] = {}
    for _ in range(rounds):
        shutil.rmtree(folder, ignore_errors=True)
        # An edited file has another time, as a user's has; that of the others stays.
        for kind, edited in (("cold", False), ("warm", False), ("edited", True)):
            path.write_text(program(system, str(folder), count, edited))
            whole, start, _ = run(python, path)
            least[kind] = min(least.get(kind, (whole, start)), (whole, start))
    return least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--octants", default=sys.executable, help="a Python that has Octants")
    parser.add_argument("--quadrants", help="a Python that has Quadrants")
    parser.add_argument("--kernels", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    os.environ.pop("OC_OFFLINE_CACHE_FILE_PATH", None)
    times = {}
    with tempfile.TemporaryDirectory() as home:
        for system, python in (("octants", options.octants), ("quadrants", options.quadrants)):
            if python:
                times[system] = measure(system, python, options.kernels, options.rounds, pathlib.Path(home))
    print(f"{options.kernels} kernels, seconds (of which import and start), milliseconds for each kernel beyond that")
    for system, kinds in times.items():
        for kind, (whole, start) in kinds.items():
            each = (whole - start) / options.kernels * 1e3
            ratio = f"  {times['quadrants'][kind][0] / whole:.1f} times as fast" if len(times) > 1 else ""
            print(f"{system:<10} {kind:<7} {whole:7.3f} ({start:.3f})  {each:7.3f} ms{ratio}")


if __name__ == "__main__":
    main()
