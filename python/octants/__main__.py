"""``python -m octants explain CODE``: what a code of an error message means."""

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
    print(f"Octants {__version__}\n\nusage: python -m octants explain CODE", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
