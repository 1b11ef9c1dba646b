"""What other libraries share with a device beside memory."""

from __future__ import annotations

__all__ = ["get_mps_command_queue"]


def get_mps_command_queue() -> int:
    """The address of the queue that torch gives Metal work in; 0 where there is none, as on every device of Octants."""
    return 0
