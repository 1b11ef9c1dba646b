"""Says what the numbers were measured on. No names of hosts or users."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def describe() -> dict[str, object]:
    return {
        "cpu": _field("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "caches": _caches(),
        "memory_GiB": round(_memory_kib() / (1 << 20), 1),
        "kernel": platform.release().split("-")[0],
        "system": _os_name(),
        "python": platform.python_version(),
    }


def load_average() -> float:
    return round(os.getloadavg()[0], 2)


def _field(path: str, name: str) -> str | None:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


def _memory_kib() -> int:
    text = _field("/proc/meminfo", "MemTotal")
    return int(text.split()[0]) if text else 0


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.system()


def _caches() -> dict[str, str]:
    found = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            level, kind, size = ((folder / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        if kind != "Instruction":
            found[f"L{level}"] = size
    return found
