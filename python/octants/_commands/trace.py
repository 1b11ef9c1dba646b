"""``octants trace``: runs a program with the profiler on."""

from __future__ import annotations

import os
import sys

from .._session import runtime
from .program import NoProgram, Program


def trace(arguments: list[str]) -> int | None:
    """The exit status of the program; ``None`` if the arguments name none."""
    out = "trace.json"
    if arguments[:1] == ["-o"] and len(arguments) > 1:
        out, arguments = arguments[1], arguments[2:]
    program = Program.parse(arguments)
    if program is None:
        return None
    os.environ["OC_KERNEL_PROFILER"] = "1"
    runtime.keep_traces()
    try:
        status = program.run()
    except NoProgram as error:
        print(f"octants: {error}", file=sys.stderr)
        return error.status
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
