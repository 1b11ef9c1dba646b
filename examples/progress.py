"""A progress bar of one line. Quiet when the output is not a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

WIDTH = 28


def progress(title: str, total: int, unit: str, per_step: float) -> Iterator[int]:
    """Counts to `total`, showing a bar and a running rate: `per_step` units are done in each step."""
    show = sys.stdout.isatty()
    start = time.perf_counter()
    for step in range(total):
        if show:
            _draw(title, step, total, unit, per_step, start)
        yield step
    _draw(title, total, total, unit, per_step, start, end="\n")


def _draw(title: str, done: int, total: int, unit: str, per_step: float, start: float, end: str = "") -> None:
    seconds = max(time.perf_counter() - start, 1e-9)
    filled = WIDTH * done // total
    bar = "█" * filled + "░" * (WIDTH - filled)
    rate = done * per_step / seconds
    rate = f"{rate / 1e6:8.1f} M" if rate >= 1e5 else f"{rate / 1e3:8.1f} k"
    rate = f"{rate} {unit}/s" if done else ""
    begin = "\r" if sys.stdout.isatty() else ""
    print(f"{begin}  {title:<10} {bar} {done:4}/{total} {rate}", end=end, flush=True)
