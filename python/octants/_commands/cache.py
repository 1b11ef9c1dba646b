"""``octants cache``: what compiled kernels are kept on disk."""

from __future__ import annotations

import os
import sys

from .._octants import cache_clean, cache_usage, cache_verify
from .._session import options


def cache(arguments: list[str]) -> int | None:
    """The exit status; ``None`` if the arguments are not understood."""
    if not 1 <= len(arguments) <= 2 or arguments[0] not in ("info", "verify", "clean"):
        return None
    given = arguments[1] if len(arguments) > 1 else os.environ.get("OC_OFFLINE_CACHE_FILE_PATH", "")
    folder = options.cache_folder(given)
    if not os.path.lexists(folder):
        print(f"{folder}: nothing is kept there")
        return 0
    try:
        if arguments[0] == "info":
            _info(folder)
            return 0
        if arguments[0] == "verify":
            return _verify(folder)
        files, size = cache_clean(folder)
        print(f"{folder}: removed {files} files, {_bytes(size)}")
        return 0
    except OSError as error:
        print(f"octants cache: {error}", file=sys.stderr)
        return 1


def _info(folder: str) -> None:
    versions = cache_usage(folder)
    entries, size = sum(count for *_, count, _ in versions), sum(size for *_, size in versions)
    print(f"{folder}: {entries} entries, {_bytes(size)}")
    for name, is_own, count, size in versions:
        print(f"  {name}{' (this version)' if is_own else ''}: {count} entries, {_bytes(size)}")


def _verify(folder: str) -> int:
    whole, damaged = cache_verify(folder)
    for path in damaged:
        print(f"damaged, and removed: {path}")
    print(f"{folder}: {whole} entries are whole, {len(damaged)} were damaged")
    return 1 if damaged else 0


def _bytes(size: int) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024  # type: ignore[assignment]
    return f"{size:.1f} GiB"
