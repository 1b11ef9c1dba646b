"""``octants trace``: runs a program with the profiler on."""

from __future__ import annotations

import os
import runpy
import sys
import traceback

from ._session import runtime


def trace(arguments: list[str]) -> int | None:
    """The exit status of the program; ``None`` if the arguments name none."""
    out = "trace.json"
    if arguments[:1] == ["-o"] and len(arguments) > 1:
        out, arguments = arguments[1], arguments[2:]
    as_module = arguments[:1] == ["-m"]
    if as_module:
        arguments = arguments[1:]
    if not arguments or arguments[0].startswith("-"):
        return None
    os.environ["OC_KERNEL_PROFILER"] = "1"
    runtime.keep_traces()
    status = _run(arguments, as_module)
    text, summaries = runtime.all_traces()
    with open(out, "w", encoding="utf-8") as file:
        file.write(text)
    sys.stdout.flush()
    for summary in summaries:
        print(f"\n{summary}", end="", file=sys.stderr)
    if not summaries:
        print("\nno session of Octants was recorded", file=sys.stderr)
    print(f"wrote {out}: open it in https://ui.perfetto.dev", file=sys.stderr, flush=True)
    return status


def _run(arguments: list[str], as_module: bool) -> int:
    """Runs the program as Python would; what it raises is shown, and is no reason to lose the trace."""
    sys.argv = list(arguments)
    try:
        if as_module:
            sys.path.insert(0, os.getcwd())
            runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, os.path.dirname(os.path.abspath(arguments[0])))
            runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0
