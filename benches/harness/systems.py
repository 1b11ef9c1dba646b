"""The systems that are compared: how each is found or installed, and what it is called.

Owns the pins and the search for octants. Runs in the driver.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from . import venvs
from .venvs import Unavailable

# In the order of the tables. The kind says which source file of a program is read and how it is called.
KINDS = {"octants": "language", "quadrants": "language", "taichi": "language", "numba": "numba", "c": "c"}
PINS = {"quadrants": ["quadrants==1.3.3"], "taichi": ["taichi==1.7.4"], "numba": ["numba"]}

C_FLAGS = ["-O3", "-march=native", "-fopenmp"]


@dataclass(frozen=True)
class System:
    name: str
    kind: str
    python: Path  # the interpreter that runs its worker
    version: str
    origin: str  # where it was found, for the person who reads the log
    arch: str = "cpu"  # the device that it is started on
    path: str | None = None  # a folder that it is imported from
    module: str | None = None  # what it is imported as, where that is not its name

    @property
    def imported(self) -> str:
        return self.module or self.name


def find(name: str, octants_python: str | None) -> System:
    """The system `name`, installed if needed; raises `Unavailable` with the reason."""
    kind = KINDS[name]
    if name == "c":
        return System(name, kind, Path(sys.executable), _gcc_version(), f"gcc {' '.join(C_FLAGS)}")
    if name == "octants":
        python, origin = _octants(octants_python)
    else:
        python, origin = venvs.ensure(name, PINS[name]), f".venvs/{name}"
    return System(name, kind, python, _package_version(python, name), origin)


def _octants(given: str | None) -> tuple[Path, str]:
    if given is not None:
        python = Path(given).absolute()
        if not python.exists():
            raise Unavailable(f"--octants-python {given}: no such file")
        return python, given
    wheels = sorted((venvs.REPOSITORY / "dist").glob("octants-*.whl"), key=lambda path: path.stat().st_mtime)
    if wheels:
        wheel = wheels[-1]
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        return venvs.ensure("octants", [str(wheel)], stamp=f"{wheel.name} {digest}"), f"dist/{wheel.name}"
    python = venvs.REPOSITORY / ".venv" / "bin" / "python"
    if python.exists():
        return python, ".venv"
    raise Unavailable("no dist/octants-*.whl and no .venv (make wheel, or give --octants-python)")


def _package_version(python: Path, module: str) -> str:
    """The installed version; a package that does not import makes its system unavailable."""
    code = (
        "import importlib, importlib.metadata as metadata, sys\n"
        f"module = importlib.import_module({module!r})\n"
        f"try: version = metadata.version({module!r})\n"
        "except metadata.PackageNotFoundError: version = str(getattr(module, '__version__', 'unknown'))\n"
        "print('\\nversion', version)\n"
    )
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False, cwd=venvs.HOME)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise Unavailable(f"import {module} failed: {lines[-1] if lines else f'exit status {done.returncode}'}")
    return done.stdout.rsplit("version ", 1)[1].strip()


def _gcc_version() -> str:
    if shutil.which("gcc") is None:
        raise Unavailable("gcc is not installed")
    done = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True, check=True)
    return f"gcc {done.stdout.strip()}"
