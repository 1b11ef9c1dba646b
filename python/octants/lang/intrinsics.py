"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .._language import clock_counter, clock_freq_hz

__all__ = ["clock_counter", "clock_freq_hz"]
