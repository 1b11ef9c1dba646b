"""Lets a link on a new system give a shared object that old ones can load.

A linker binds each function of the C library to the newest version that the library at hand has; the object then asks for that
version wherever it is loaded. Here the linker sees *stand-ins* instead: libraries without code that have the C library's names with
the newest version that a given glibc had. What that glibc did not have at all is missing in the stand-ins and is defined by
glibc_floor.c; what is in neither stays undefined, which a linker refuses or, in an extension of Python, whoever looks at the
object's symbols afterwards.

Only the names and versions matter in a link: the old versions are listed by the system's own libraries, which keep them for
programs that were linked long ago.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from pathlib import Path

DEFINITIONS = Path(__file__).with_suffix(".c")

# The parts of glibc that an object may refer to. Up to glibc 2.33 threads and the dynamic linker's functions had libraries of their own,
# which newer ones keep as empty files.
_LIBRARIES = ("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1")
_LOADERS = ("ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1")
# Functions that lived in these then are found in them by name and version, although the object names libc.so.6 for them; so the
# object needs them, too.
_ALWAYS_NEEDED = ("libpthread.so.0", "libdl.so.2")

_SYMBOL = re.compile(
    r"^\s*\d+: [0-9a-f]+ +(?P<size>\d+|0x[0-9a-f]+) +(?P<kind>FUNC|IFUNC|OBJECT|NOTYPE) +(?:GLOBAL|WEAK) +DEFAULT +\w+ "
    r"(?P<name>[A-Za-z_]\w*)@@?GLIBC_(?P<version>[\d.]+)$",
    re.MULTILINE,
)

Version = tuple[int, ...]


def make_linker(parent: Path, floor: Version) -> Path:
    """Writes stand-ins for the system's C library, as of glibc `floor`, and a linker that uses them, into a folder under `parent`; returns
    the linker. Its name changes with what is written here and in the definitions."""
    contents = hashlib.sha256(Path(__file__).read_bytes() + DEFINITIONS.read_bytes()).hexdigest()[:12]
    folder = parent / f"glibc-{'.'.join(map(str, floor))}-{contents}"
    folder.mkdir(parents=True, exist_ok=True)
    names = [name for name in (*_LIBRARIES, *_LOADERS) if _find(name) is not None]
    for name in names:
        _make_stand_in(name, folder, floor)
    grouped = " ".join(str(folder / name) for name in names if name.startswith("libc.") or name in _LOADERS)
    # What the C library links statically into every object.
    grouped += f" {_find('libc_nonshared.a')}"
    (folder / "libc.so").write_text(f"GROUP ( {grouped} )\n")
    for name in names:
        short = re.match(r"lib(\w+)\.so", name)
        if short and short[1] != "c":
            (folder / f"lib{short[1]}.so").write_text(f"INPUT ( {folder / name} )\n")
    definitions = folder / "glibc_floor.o"
    subprocess.run(["cc", "-c", "-O2", "-fPIC", "-ffunction-sections", "-o", definitions, DEFINITIONS], check=True)
    needed = " ".join(f"-l:{name}" for name in _ALWAYS_NEEDED)
    linker = folder / "cc"
    linker.write_text(
        "#!/bin/sh\n"
        f"exec cc -L'{folder}' \"$@\" '{definitions}' -Wl,--push-state,--no-as-needed {needed} -Wl,--pop-state\n"
    )
    linker.chmod(0o755)
    return linker


def _find(library: str) -> Path | None:
    """Where the C compiler finds a library."""
    found = subprocess.run(
        ["cc", f"-print-file-name={library}"], check=True, capture_output=True, text=True
    ).stdout.strip()
    return Path(found) if Path(found).is_absolute() else None


def _make_stand_in(library: str, folder: Path, floor: Version) -> None:
    """Writes a shared library that has what `library` had in glibc `floor`, in the version that was current then."""
    path = _find(library)
    assert path is not None
    listing = subprocess.run(
        ["readelf", "--dyn-syms", "--wide", path], check=True, capture_output=True, text=True
    ).stdout
    current: dict[str, tuple[Version, str, int]] = {}
    for symbol in _SYMBOL.finditer(listing):
        version = tuple(int(part) for part in symbol["version"].split("."))
        if version <= floor and version > current.get(symbol["name"], ((), "", 0))[0]:
            current[symbol["name"]] = (version, symbol["kind"], int(symbol["size"], 0))
    lines: list[str] = []
    for name, (version, kind, size) in sorted(current.items()):
        is_data = kind == "OBJECT"
        lines += [
            f".section {'.bss' if is_data else '.text'}",
            f".globl {name}",
            f".type {name}, %{'object' if is_data else 'function'}",
            f"{name}: .skip {max(size, 1) if is_data else 1}",
            f".size {name}, {max(size, 1) if is_data else 1}",
            f".symver {name}, {name}@@@GLIBC_{'.'.join(map(str, version))}",
        ]
    source, versions = folder / f"{library}.s", folder / f"{library}.versions"
    source.write_text("\n".join(lines) + "\n")
    known = sorted({version for version, _, _ in current.values()})
    versions.write_text("".join(f"GLIBC_{'.'.join(map(str, version))} {{ }};\n" for version in known))
    script = [f"-Wl,--version-script={versions}"] if known else []
    subprocess.run(
        ["cc", "-shared", "-nostdlib", f"-Wl,-soname,{library}", *script, "-o", folder / library, source], check=True
    )
