"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .._language import stream_parallel
from .._session.streams import Event, Stream, create_event, create_stream

__all__ = ["Event", "Stream", "create_event", "create_stream", "stream_parallel"]
