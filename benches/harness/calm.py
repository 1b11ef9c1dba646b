"""Says how much of the machine other work took while something was measured.

A turn in which others took more than `LIMIT` of the machine's time is disturbed: its samples count only for a system
that never had a calm turn. Standard library only: it runs in the driver and in every worker.
"""

from __future__ import annotations

import os
import time

LIMIT = 0.08
ENOUGH = 2  # calm turns after which a system needs no more


def _busy_seconds() -> float:
    """Time that all cores together spent working, or were taken by the hypervisor, since the machine started."""
    with open("/proc/stat") as file:
        user, nice, system, _idle, _wait, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


class Watch:
    """Begins when it is made; `others(own)` is the share of the machine that was not spent by `own` seconds."""

    def __init__(self) -> None:
        self.busy, self.begin = _busy_seconds(), time.perf_counter()

    def others(self, own_cpu_seconds: float) -> float:
        wall = time.perf_counter() - self.begin
        return max(0.0, _busy_seconds() - self.busy - own_cpu_seconds) / (wall * (os.cpu_count() or 1))
