"""``octants run``: runs a program that was written for a peer."""

from __future__ import annotations

import sys

from .._peer.install_as import PEERS, install_as
from .program import NoProgram, Program


def run(arguments: list[str]) -> int | None:
    """The exit status of the program; ``None`` if the arguments name none."""
    peer = None
    if arguments[:1] == ["--as"] and len(arguments) > 1:
        peer, arguments = arguments[1], arguments[2:]
    elif arguments and arguments[0].startswith("--as="):
        peer, arguments = arguments[0][len("--as=") :], arguments[1:]
    program = Program.parse(arguments)
    if program is None:
        return None
    if peer is not None:
        if peer not in PEERS:
            print(f"octants: --as takes {' or '.join(PEERS)}, not {peer!r}", file=sys.stderr)
            return 2
        try:
            install_as(peer)
        except RuntimeError as error:
            print(f"octants: {error}", file=sys.stderr)
            return 2
    try:
        return program.run()
    except NoProgram as error:
        print(f"octants: {error}", file=sys.stderr)
        return error.status
