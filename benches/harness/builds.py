"""Builds of the package as folders to import it from: of any commit, and of a wheel.

Owns the clone that older commits are built in and the folders that their wheels are unpacked into, `.venvs/against/`. Standard library only.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from . import venvs
from .venvs import Unavailable


def home() -> Path:
    return venvs.HOME / "against"


def commit_of(revision: str) -> tuple[str, str]:
    """The hash of a commit and its one-line description."""
    shown = _git(
        venvs.REPOSITORY, "log", "-1", "--format=%H %h %ad: %s", "--date=short", f"{revision}^{{commit}}", "--"
    )
    commit, described = shown.split(" ", 1)
    return commit, described


def of_commit(commit: str) -> Path:
    """The folder with this commit's package, which is built unless an earlier call did.

    All commits are built in one clone with one folder of cargo's, so that it compiles what differs from the commit that was built before. The working
    tree's folder cannot serve: to cargo a crate of two clones is one crate, and what it compiled of one is up to date for older files of the other.
    """
    folder, clone = home() / commit, home() / "clone"
    home().mkdir(parents=True, exist_ok=True)
    with (home() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.exists():
            return folder
        if not clone.exists():
            _git(venvs.REPOSITORY, "clone", "--quiet", "--shared", "--no-checkout", str(venvs.REPOSITORY), str(clone))
            (clone / ".venv").symlink_to(venvs.REPOSITORY / ".venv")  # packages that the build takes files from
        _git(clone, "checkout", "--quiet", "--force", "--detach", commit)
        shutil.rmtree(clone / "dist", ignore_errors=True)
        done = subprocess.run(
            [sys.executable, "scripts/build_wheel.py"], cwd=clone, env=_environment(clone), check=False
        )
        wheels = sorted((clone / "dist").glob("*.whl"))
        if done.returncode != 0 or not wheels:
            raise Unavailable(f"the wheel of {commit} cannot be built (exit status {done.returncode})")
        unpacked = home() / f"{commit}.part"
        shutil.rmtree(unpacked, ignore_errors=True)
        of_wheel(wheels[-1], unpacked)
        unpacked.rename(folder)  # whole, or not there
    return folder


def of_wheel(wheel: Path, folder: Path) -> Path:
    """The folder, with what the wheel installs."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def newest_wheel() -> Path:
    """What `make wheel` built last."""
    wheels = sorted((venvs.REPOSITORY / "dist").glob("octants-*.whl"), key=lambda path: path.stat().st_mtime)
    if not wheels:
        raise Unavailable("no dist/octants-*.whl (make wheel, or give --octants)")
    return wheels[-1]


def _environment(clone: Path) -> dict[str, str]:
    """For commands in the clone: without what git says to its hooks about the repository that called them."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {"PWD": str(clone), "CARGO_TARGET_DIR": str(home() / "target")}


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], env=_environment(folder), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise Unavailable(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()
