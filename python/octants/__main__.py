"""The command ``octants``, also as ``python -m octants``."""

from __future__ import annotations

import sys

from ._octants import __version__, explain

USAGE = """\
usage: octants explain CODE
           what a code of an error message means
       octants run [--as quadrants|taichi] PROGRAM [ARGUMENT...]
       octants run [--as quadrants|taichi] -m MODULE [ARGUMENT...]
           runs a Python program; with --as, what it imports under the name of a peer is Octants
       octants trace [-o FILE] PROGRAM [ARGUMENT...]
       octants trace [-o FILE] -m MODULE [ARGUMENT...]
           runs a Python program with the profiler on, writes its timeline to FILE (trace.json) and prints a summary
       octants cache info|verify|clean [FOLDER]
           what compiled kernels are kept on disk; reads all of them and removes those that are damaged; removes all
       octants --version"""


def main(arguments: list[str]) -> int:
    if len(arguments) == 2 and arguments[0] == "explain":
        text = explain(arguments[1])
        if text is None:
            print(f"there is no code {arguments[1]}", file=sys.stderr)
            return 1
        print(text)
        return 0
    if arguments == ["--version"]:
        print(f"Octants {__version__}")
        return 0
    if arguments[:1] == ["run"]:
        from ._commands.run import run as run_program

        status = run_program(arguments[1:])
        if status is not None:
            return status
    if arguments[:1] == ["trace"]:
        from ._commands.trace import trace

        status = trace(arguments[1:])
        if status is not None:
            return status
    if arguments[:1] == ["cache"]:
        from ._commands.cache import cache

        status = cache(arguments[1:])
        if status is not None:
            return status
    print(f"Octants {__version__}\n\n{USAGE}", file=sys.stderr)
    return 2


def run() -> None:
    """The command ``octants``."""
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    run()
