"""Runs scenes of the Genesis simulator on quadrants and, unmodified, on Octants, and prints a table: what differs and the times.

    python benches/genesis/compare.py                       # every scene, with arrays and with fields: hours on a small machine
    python benches/genesis/compare.py boxes franka --mode arrays
    python benches/genesis/compare.py --python PATH         # an interpreter that has Genesis already
    python benches/genesis/compare.py --octants PATH        # a folder with the package octants, in place of the newest wheel

Builds are cold: neither system keeps code on disk. Times are those of the process, so that others on the machine count little; steps are
single-threaded in both, as Genesis asks for. Owns the environment and the table; the scenes are in ``scenes.py``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from harness import venvs  # noqa: E402

REQUIREMENTS = ["torch", "genesis-world==1.4.5"]
NAMES = [
    "boxes", "franka", "grasp", "go2", "drone", "terrain", "envs16", "mpm", "sph", "cloth", "fem_explicit", "fem_implicit", "mpm_grad",
]  # fmt: skip
#: How far a probe may be off, absolutely where it is small and relative to it where it is large.
TOLERANCE = {"32": 1e-5, "64": 1e-6}
MODES = {"arrays": [], "fields": ["--performance-mode"]}


def environment(options: argparse.Namespace) -> tuple[Path, dict[str, str]]:
    """The interpreter, and what the environment of its processes has besides."""
    added = {"QD_OFFLINE_CACHE": "0", "OC_OFFLINE_CACHE": "0"}
    python = Path(options.python) if options.python else venvs.ensure("genesis", REQUIREMENTS)
    if options.octants:
        return python, added | {"PYTHONPATH": str(Path(options.octants).resolve())}
    wheels = sorted((venvs.REPOSITORY / "dist").glob("octants-*.whl"), key=lambda path: path.stat().st_mtime)
    if not wheels:
        raise SystemExit("there is no wheel in dist/: make one, or name a folder with --octants")
    subprocess.run([python, "-m", "pip", "install", "-q", "--force-reinstall", "--no-deps", wheels[-1]], check=True)
    return python, added


def run(python: Path, environment: dict[str, str], system: str, scene: str, arguments: list[str]) -> dict | str:
    """What a scene gave; a text if it failed."""
    command = ["run_scene.py", scene, *arguments]
    if system == "octants":
        command = ["-m", "octants", "run", "--as", "quadrants", *command]
    done = subprocess.run(
        [str(python), *command], cwd=HERE, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    results = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if done.returncode or not results:
        lines = (done.stderr or done.stdout).strip().splitlines()
        return lines[-1] if lines else f"exit status {done.returncode}"
    return json.loads(results[-1][len("RESULT ") :])


def difference(ours: dict, theirs: dict) -> float:
    """The largest one between the probes, relative to what is larger than one."""
    largest = 0.0
    for name, numbers in theirs.items():
        if len(numbers) != len(ours[name]):
            return float("inf")
        for a, b in zip(ours[name], numbers, strict=True):
            largest = max(largest, abs(a - b) / max(1.0, abs(b))) if a == a and b == b else float("inf")
    return largest


def row(ours: dict | str, theirs: dict | str, tolerance: float) -> str:
    if isinstance(ours, str) or isinstance(theirs, str):
        failed = [f"{name}: {one}" for name, one in (("octants", ours), ("quadrants", theirs)) if isinstance(one, str)]
        return "failed: " + "; ".join(failed)
    off = difference(ours["probes"], theirs["probes"])
    speed = [one["steps"] / one["steps_cpu_s"] for one in (ours, theirs)]
    builds = [one["build_cpu_s"] for one in (ours, theirs)]
    verdict = "same" if off <= tolerance else "DIFFERS"
    return (
        f"{off:8.1e} {verdict:8} {builds[0]:8.1f} {builds[1]:8.1f} {builds[1] / builds[0]:6.1f}× "
        f"{speed[0]:10.1f} {speed[1]:10.1f} {speed[0] / speed[1]:6.2f}×"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", nargs="*", help=f"of {', '.join(NAMES)}; all by default")
    parser.add_argument("--mode", choices=MODES, action="append", help="arrays or fields; both by default")
    parser.add_argument("--precision", choices=TOLERANCE, default="32")
    parser.add_argument("--python", help="an interpreter that has Genesis")
    parser.add_argument("--octants", help="a folder with the package octants")
    parser.add_argument("--results", help="a file for everything that was measured, as JSON")
    options = parser.parse_args()
    unknown = sorted(set(options.scenes) - set(NAMES))
    if unknown:
        parser.error(f"there is no scene {', '.join(unknown)}")
    python, added = environment(options)
    print(
        f"{'scene':13} {'mode':7} {'off by':>8} {'':8} {'build s':>8} {'peer':>8} {'':7} {'steps/s':>10} {'peer':>10}"
    )
    kept, failed = [], False
    for scene in options.scenes or NAMES:
        for mode in options.mode or MODES:
            arguments = [*MODES[mode], "--precision", options.precision]
            ours, theirs = (run(python, added, system, scene, arguments) for system in ("octants", "quadrants"))
            text = row(ours, theirs, TOLERANCE[options.precision])
            failed = failed or "same" not in text
            print(f"{scene:13} {mode:7} {text}", flush=True)
            kept.append({"scene": scene, "mode": mode, "octants": ours, "quadrants": theirs})
    if options.results:
        Path(options.results).write_text(json.dumps(kept, indent=1), encoding="utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
