"""Makes the virtual environments under `.venvs/`: one per system, so that no two systems share a package.

Owns where they are and when they are up to date. Standard library only: it runs before anything is installed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
HOME = REPOSITORY / ".venvs"
STAMP = "bench-requirements.txt"


class Unavailable(Exception):
    """A system that cannot run here; the text says why in one line."""


def interpreter(name: str) -> Path:
    return HOME / name / "bin" / "python"


def inside(name: str) -> bool:
    """Whether this process runs in the environment `name`."""
    return Path(sys.prefix).resolve() == (HOME / name).resolve()


def ensure(name: str, requirements: list[str], stamp: str | None = None) -> Path:
    """The interpreter of the environment `name` with `requirements` installed.

    `stamp` stands for what is installed when the requirement's text alone does not (a wheel that is rebuilt under the
    same name).
    """
    python = interpreter(name)
    wanted = stamp or "\n".join(requirements)
    recorded = HOME / name / STAMP
    if python.exists() and recorded.exists() and recorded.read_text() == wanted:
        return python
    print(f"  setting up .venvs/{name}: {' '.join(Path(r).name for r in requirements)}", flush=True)
    if not python.exists():
        _command([sys.executable, "-m", "venv", str(HOME / name)], f"cannot create .venvs/{name}")
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if stamp is not None:
        # Same version, new bytes: replace the package itself, keep its dependencies.
        _command([*install, "--force-reinstall", "--no-deps", *requirements], f"pip failed for {name}")
    _command([*install, *requirements], f"pip failed for {name}")
    recorded.write_text(wanted)
    return python


def _command(command: list[str], failure: str) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        lines = [line for line in done.stdout.strip().splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower()] or lines
        raise Unavailable(f"{failure}: {errors[-1] if errors else f'exit status {done.returncode}'}")
