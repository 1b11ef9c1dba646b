"""Packs the wheel, the tests, the benchmarks and one script into dist/gpu-bundle/ and dist/gpu-bundle.tar.gz, for an offline CUDA machine.

    python scripts/build_gpu_bundle.py [WHEEL...]

Further wheels (a peer's, to be measured beside) are taken along if the whole stays below the limit.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUNDLE = ROOT / "dist" / "gpu-bundle"
LIMIT = 60e6

#: What of the repository goes along, as git knows it.
FOLDERS = ("tests", "benches", "examples", "docs/guide", "docs/reference", "scripts/run_gpu.py", "README.md", "LICENSE")

#: What pytest is made of, for a machine that has none: pure Python.
PYTEST = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments")


def copy_files() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "--", *FOLDERS],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in listed.stdout.splitlines():
        source, target = ROOT / name, BUNDLE / name
        if source.is_file() and not name.startswith("benches/results/"):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


def copy_pytest() -> None:
    for name in PYTEST:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            sys.exit(f"the environment that builds the bundle has no {name}")
        if not spec.submodule_search_locations:
            shutil.copy2(spec.origin, BUNDLE / "vendor")
            continue
        origin = Path(spec.origin).parent
        shutil.copytree(origin, BUNDLE / "vendor" / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        for described in origin.parent.glob(f"{name}-*.dist-info"):
            shutil.copytree(described, BUNDLE / "vendor" / described.name, dirs_exist_ok=True)


def main() -> None:
    wheels = sorted((ROOT / "dist").glob("octants-*.whl"))
    if len(wheels) != 1:
        sys.exit(f"expected one wheel in dist/, found {[wheel.name for wheel in wheels]}: run make wheel")
    shutil.rmtree(BUNDLE, ignore_errors=True)
    BUNDLE.mkdir(parents=True)
    for wheel in [wheels[0], *map(Path, sys.argv[1:])]:
        shutil.copy2(wheel, BUNDLE)
    shutil.copy2(ROOT / "scripts" / "run_gpu.sh", BUNDLE / "run_gpu.sh")
    copy_files()
    copy_pytest()
    archive = BUNDLE.with_suffix(".tar.gz")
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(BUNDLE, BUNDLE.name)
    folder = sum(path.stat().st_size for path in BUNDLE.rglob("*") if path.is_file())
    print(f"dist/gpu-bundle/ {folder / 1e6:.1f} MB, dist/{archive.name} {archive.stat().st_size / 1e6:.1f} MB")
    if max(folder, archive.stat().st_size) > LIMIT:
        sys.exit(f"the bundle is larger than {LIMIT / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
