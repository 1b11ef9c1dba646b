"""What the package says by itself, and from which level on."""

from __future__ import annotations

import sys

TRACE = "trace"
DEBUG = "debug"
INFO = "info"
WARN = "warn"
ERROR = "error"
CRITICAL = "critical"

_LEVELS = (TRACE, DEBUG, INFO, WARN, ERROR, CRITICAL, "off")
_current = INFO


def set_logging_level(level: str) -> None:
    """Sets the least level that is shown: "trace", "debug", "info", "warn", "error", "critical" or "off"."""
    global _current
    if level not in _LEVELS:
        raise ValueError(f"a logging level is one of {', '.join(_LEVELS)}, not {level!r}")
    _current = level


def logging_level() -> str:
    """The least level that is shown."""
    return _current


def is_logging_effective(level: str) -> bool:
    """Whether messages of a level are shown."""
    if level not in _LEVELS:
        raise ValueError(f"a logging level is one of {', '.join(_LEVELS)}, not {level!r}")
    return _LEVELS.index(level) >= _LEVELS.index(_current)


def _get_logging(level: str):
    """What shows messages of a level."""

    def show(message: str, *args, **kwargs) -> None:
        if is_logging_effective(level):
            text = message.format(*args, **kwargs) if args or kwargs else message
            print(f"[Octants] {text}", file=sys.stderr, flush=True)

    return show


# Programs put functions of their own in the place of these.
trace = _get_logging(TRACE)
debug = _get_logging(DEBUG)
info = _get_logging(INFO)
warn = _get_logging(WARN)
error = _get_logging(ERROR)
critical = _get_logging(CRITICAL)
