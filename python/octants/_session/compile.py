"""``oc.compile`` and ``oc.compile_all``: code before it is needed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from .._octants import BoundKernel, Kernel, host_only

TYPE_CHECKING = False  # as `typing` says it, without its weight
if TYPE_CHECKING:
    from typing import Any


def _split(kernel: Any, args: tuple[Any, ...]) -> tuple[Kernel, tuple[Any, ...]]:
    """The kernel and all of its arguments, the object of a method among them."""
    if isinstance(kernel, BoundKernel):
        return kernel.__func__, (kernel.__self__, *args)
    if isinstance(kernel, Kernel):
        return kernel, args
    raise TypeError(f"oc.compile takes a kernel and its arguments, not {type(kernel).__name__}")


def compile(kernel, *args, grad: bool = False, **kwargs) -> None:  # noqa: A001
    """Compiles a kernel for arguments like these, and launches nothing. A call that follows starts at once.

    ``grad=True`` compiles the derivative that ``kernel.grad`` runs.
    """
    host_only("compile")
    plain, all_args = _split(kernel, args)
    plain._compile(all_args, kwargs or None, bool(grad))


def compile_all(
    calls: Iterable[tuple[Any, ...]],
    *,
    background: bool = False,
    progress: bool | None = None,
    threads: int | None = None,
) -> Compilations:
    """Compiles many kernels at the same time. Each call is a kernel and its arguments: ``(kernel, a, b)``.

    With ``background=True`` it returns at once; ``wait()`` of what it returns ends when all is done. ``progress`` shows a bar on the
    terminal; by default if there is one. The first error is raised when all is done.
    """
    host_only("compile_all")
    wanted = [(_split(call[0], tuple(call[1:]))) for call in calls]
    shown = sys.stderr.isatty() if progress is None else progress
    compilations = Compilations(wanted, threads or _processors(), shown)
    if not background:
        compilations.wait()
    return compilations


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Compilations:
    """Kernels that are being compiled."""

    def __init__(self, calls: list[tuple[Kernel, tuple[Any, ...]]], threads: int, progress: bool):
        import threading

        self._waiting = list(reversed(calls))
        self._total = len(calls)
        self._finished = 0
        self._progress = progress
        self._error: BaseException | None = None
        self._lock = threading.Lock()
        count = min(threads, len(calls))
        self._threads = [threading.Thread(target=self._work, name="octants-compile", daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    @property
    def total(self) -> int:
        """How many there are."""
        return self._total

    @property
    def finished(self) -> int:
        """How many are done."""
        with self._lock:
            return self._finished

    def wait(self) -> None:
        """Waits until all are done, and raises the first error."""
        for thread in self._threads:
            thread.join()
        with self._lock:
            error, self._error = self._error, None
        if error is not None:
            raise error

    def cancel(self) -> None:
        """Begins no more of them."""
        with self._lock:
            self._total -= len(self._waiting)
            self._waiting.clear()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    return
                kernel, args = self._waiting.pop()
            try:
                kernel._compile(args, None, False)
            except BaseException as error:
                with self._lock:
                    self._error = self._error or error
            with self._lock:
                self._finished += 1
                if self._progress:
                    self._show(kernel.__qualname__)

    def _show(self, name: str) -> None:
        width = 30
        filled = width * self._finished // max(self._total, 1)
        bar = "█" * filled + "░" * (width - filled)
        end = "\n" if self._finished == self._total else ""
        text = f"[Octants] compiling {bar} {self._finished}/{self._total} {name[-40:]}"
        print(f"\r{text:<110}", end=end, file=sys.stderr, flush=True)
