"""``octants explain CODE``, also as ``python -m octants``: what a code of an error message means."""

from __future__ import annotations

import sys

from ._octants import __version__, explain


def main(arguments: list[str]) -> int:
    if len(arguments) == 2 and arguments[0] == "explain":
        text = explain(arguments[1])
        if text is None:
            print(f"there is no code {arguments[1]}", file=sys.stderr)
            return 1
        print(text)
        return 0
    print(f"Octants {__version__}\n\nusage: octants explain CODE", file=sys.stderr)
    return 2


def run() -> None:
    """The command ``octants``."""
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    run()
