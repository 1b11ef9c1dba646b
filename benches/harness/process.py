"""Starts and talks to the processes that measure: long-lived workers, and fresh processes for start-up figures.

Owns their environment, their logs, time limits and what happens when one dies. Runs in the driver.
"""

from __future__ import annotations

import json
import os
import resource
import select
import subprocess
import time
from pathlib import Path
from typing import Any

from . import calm
from .systems import System

BENCHES = Path(__file__).resolve().parents[1]
LIMIT_SECONDS = 180.0


class Failed(Exception):
    """A measurement that gave no number; the text says why."""


def environment(system: System, scratch: Path) -> dict[str, str]:
    """The user's environment, except that on-disk caches of compiled kernels start empty."""
    paths = [str(BENCHES), *filter(None, [system.path, os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths), "XDG_CACHE_HOME": str(scratch / "cache")}


class Worker:
    """The worker process of one system. It is started when first asked and again after it died."""

    def __init__(self, system: System, scratch: Path) -> None:
        self.system, self.scratch = system, scratch
        self.log = scratch / f"{system.name}.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.pending = b""

    def ask(self, **request: Any) -> dict[str, Any]:
        if self.process is None:
            self._start()
        assert self.process is not None and self.process.stdin is not None
        try:
            self.process.stdin.write((json.dumps(request) + "\n").encode())
            self.process.stdin.flush()
            answer = json.loads(self._line())
        except (BrokenPipeError, EOFError):
            raise Failed(self._ended()) from None
        if not answer.pop("ok"):
            raise Failed(answer["error"])
        return answer

    def stop(self) -> None:
        if self.process is None:
            return
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.process = None

    def _start(self) -> None:
        command = [
            str(self.system.python),
            "-m",
            "harness.worker",
            self.system.kind,
            self.system.imported,
            str(self.scratch),
            self.system.arch,
        ]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self.scratch,
                env=environment(self.system, self.scratch),
            )
        self.pending = b""

    def _line(self) -> bytes:
        assert self.process is not None and self.process.stdout is not None
        deadline = time.monotonic() + LIMIT_SECONDS
        while b"\n" not in self.pending:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                self.process.kill()
                self.stop()
                raise Failed(f"no answer within {LIMIT_SECONDS:.0f} s")
            chunk = os.read(self.process.stdout.fileno(), 1 << 16)
            if not chunk:
                raise EOFError
            self.pending += chunk
        line, self.pending = self.pending.split(b"\n", 1)
        return line

    def _ended(self) -> str:
        assert self.process is not None
        code = self.process.wait()
        self.stop()
        return f"its process ended ({f'signal {-code}' if code < 0 else f'exit status {code}'}){last_words(self.log)}"


def fresh(system: System, scratch: Path, what: str, *extra: str) -> tuple[dict[str, float], float]:
    """The figures that `harness.startup` takes in a new process, and the share of the machine that others took."""
    log = scratch / f"{system.name}-{what}.log"
    command = [
        str(system.python),
        "-m",
        "harness.startup",
        what,
        system.kind,
        system.imported,
        str(scratch),
        system.arch,
    ]
    command += extra
    watch, before = calm.Watch(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with log.open("wb") as errors:
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=scratch,
                env=environment(system, scratch),
                timeout=LIMIT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Failed(f"no answer within {LIMIT_SECONDS:.0f} s") from None
    if done.returncode != 0:
        raise Failed(f"exit status {done.returncode}{last_words(log)}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(done.stdout), watch.others(own)


def last_words(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return f": {lines[-1].strip()}" if lines else ""
