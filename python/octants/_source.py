"""Finds the text of a function that stands in no file: notebook cells, doctests, interactive sessions."""

from __future__ import annotations


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
