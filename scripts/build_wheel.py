"""Builds the release wheel into dist/ and checks that it stands on its own.

The wheel must run on a machine that has neither LLVM nor Rust, and with a C library that is older than the one here. So the shared
object inside may need the C library's own libraries and nothing else, of no newer version than `GLIBC`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from glibc_floor import make_linker

ROOT = Path(__file__).resolve().parent.parent

# The oldest C library that the wheel runs with: that of Ubuntu 18.04; RHEL 8 and Debian 10 have a newer one.
GLIBC = (2, 27)

# Parts of glibc, and the compiler's support library that every glibc system carries.
ALLOWED_LIBRARIES = {
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "librt.so.1",
    "libpthread.so.0",
    "libgcc_s.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
}


def needed_libraries(shared_object: Path) -> list[str]:
    """The shared libraries that the dynamic loader will look for."""
    dynamic = subprocess.run(
        ["readelf", "--dynamic", "--wide", shared_object], check=True, capture_output=True, text=True
    ).stdout
    return re.findall(r"\(NEEDED\)\s+Shared library: \[(.+?)\]", dynamic)


def newest_glibc_symbol(shared_object: Path) -> tuple[int, int]:
    """The newest GLIBC_x.y version among the symbols that the object imports."""
    versions = subprocess.run(
        ["readelf", "--version-info", "--wide", shared_object], check=True, capture_output=True, text=True
    ).stdout
    found = re.findall(r"GLIBC_(\d+)\.(\d+)", versions)
    return max((int(major), int(minor)) for major, minor in found)


def unresolved_symbols(shared_object: Path) -> list[str]:
    """What the object needs of no library that it names; the interpreter's own functions, which it finds in its process, left out."""
    symbols = subprocess.run(
        ["readelf", "--dyn-syms", "--wide", shared_object], check=True, capture_output=True, text=True
    ).stdout
    unversioned = re.findall(r" GLOBAL +DEFAULT +UND (\w+)$", symbols, re.MULTILINE)
    return [name for name in unversioned if not re.match(r"_?Py", name)]


def check(wheel: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch, zipfile.ZipFile(wheel) as archive:
        shared_objects = [name for name in archive.namelist() if name.endswith(".so")]
        if len(shared_objects) != 1:
            sys.exit(f"{wheel.name}: expected one shared object inside, found {shared_objects}")
        shared_object = Path(archive.extract(shared_objects[0], scratch))
        foreign = sorted(set(needed_libraries(shared_object)) - ALLOWED_LIBRARIES)
        if foreign:
            sys.exit(f"{wheel.name}: needs libraries that a plain machine may not have: {', '.join(foreign)}")
        if unresolved := unresolved_symbols(shared_object):
            sys.exit(f"{wheel.name}: scripts/glibc_floor.c should define these: {', '.join(unresolved)}")
        glibc = newest_glibc_symbol(shared_object)
    if glibc > GLIBC:
        sys.exit(
            f"{wheel.name}: its symbols need glibc {glibc[0]}.{glibc[1]}; it should run with {GLIBC[0]}.{GLIBC[1]}"
        )
    if f"-manylinux_{GLIBC[0]}_{GLIBC[1]}_" not in wheel.name:
        sys.exit(f"{wheel.name}: its platform tag does not name glibc {GLIBC[0]}.{GLIBC[1]}")
    if "-abi3-" not in wheel.name:
        sys.exit(f"{wheel.name}: not an abi3 wheel")


def main() -> None:
    maturin = Path(sys.executable).with_name("maturin")
    # A folder of cargo's, under the same name each time: cargo links again when the linker's name changes.
    linker = make_linker(Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve(), GLIBC)
    options = ["--release", "--quiet", "--out", "dist", "--compatibility", f"manylinux_{GLIBC[0]}_{GLIBC[1]}"]
    subprocess.run([maturin, "build", *options, "--", "-C", f"linker={linker}"], cwd=ROOT, check=True)
    wheels = sorted((ROOT / "dist").glob("*.whl"))
    if len(wheels) != 1:
        sys.exit(f"expected one wheel in dist/, found {[wheel.name for wheel in wheels]}")
    check(wheels[0])
    print(f"Built {wheels[0].name}: {wheels[0].stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
