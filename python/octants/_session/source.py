"""Finds the text of a function that stands in no file (notebook cells, doctests, interactive sessions), and tells whether a text is a function's."""

from __future__ import annotations

import functools
import types


class SourceChanged(OSError):
    """The file of a function was changed after Python had imported it."""


def is_text_of(text: str, function) -> bool:
    """Whether Python compiled the function from this text of its file."""
    loader = function.__globals__.get("__loader__")
    # Others may change what they compile, as pytest does with assertions.
    if loader is not None and type(loader).__name__ not in ("SourceFileLoader", "zipimporter"):
        return True
    code = function.__code__
    return code in _codes(text, code.co_filename)


@functools.lru_cache(maxsize=8)
def _codes(text: str, filename: str) -> frozenset[types.CodeType]:
    """All that Python compiles a text to."""
    try:
        waiting = [compile(text, filename, "exec", dont_inherit=True)]
    except (SyntaxError, ValueError):
        return frozenset()
    found = set()
    while waiting:
        code = waiting.pop()
        found.add(code)
        waiting.extend(constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return frozenset(found)


def find(function) -> tuple[str, int]:
    """The text that the function is part of, and the line in it where the function (with its decorators) starts."""
    import linecache

    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if lines:
        return "".join(lines), code.co_firstlineno
    typed = _from_history(code.co_name)
    if typed is not None:
        return typed, 1
    raise OSError(f"there is no file {code.co_filename!r}")


def find_text(function) -> str | None:
    """The text of the whole file that the function is part of, if there is one."""
    import linecache

    return "".join(linecache.getlines(function.__code__.co_filename, function.__globals__)) or None


def _from_history(name: str) -> str | None:
    """The last definition of the name that was typed at a prompt."""
    try:
        import readline
    except ImportError:
        return None
    count = readline.get_current_history_length()
    lines = [readline.get_history_item(n) or "" for n in range(1, count + 1)]
    starts = [n for n, line in enumerate(lines) if line.startswith(f"def {name}(")]
    if not starts:
        return None
    first = last = starts[-1]
    while first > 0 and lines[first - 1].startswith("@"):
        first -= 1
    while last + 1 < len(lines) and (not lines[last + 1].strip() or lines[last + 1][0] in " \t"):
        last += 1
    return "\n".join(lines[first : last + 1]) + "\n"
