"""Streams and events: queues of launches, and points in them."""

from __future__ import annotations

from .. import _octants
from . import runtime


class Stream(_octants.Stream):
    """A queue of launches and copies. ``oc.create_stream()`` makes one; ``Stream(handle)`` wraps one that another library made.

    What is told to one stream runs in order. Two streams have no order but by events. A kernel takes one as ``qd_stream=``. Leaving a
    ``with`` block waits for the queue; a wrapped stream is never destroyed. ``Stream(0)`` is the default stream.
    """

    def __new__(cls, handle):
        return super().__new__(cls, runtime, handle, None)


class Event(_octants.Event):
    """A point in a stream's queue, which other streams and the host can wait for. ``oc.create_event()`` makes one."""

    def __new__(cls):
        return super().__new__(cls, runtime)


def create_stream(*, priority: int = 0) -> Stream:
    """A new stream. Below 0 a ``priority`` is more urgent than the default stream's, above 0 less; a hint, as in torch."""
    return _octants.Stream.__new__(Stream, runtime, None, priority)


def create_event() -> Event:
    """A new event. It is passed until it is recorded."""
    return Event()
