"""What a figure is asked to reach. A program's `about.py` names its targets; the report shows reached or not.

All values are "lower is better" (seconds or bytes). A target answers `None` when a system that it needs has no value.
"""

from __future__ import annotations

from dataclasses import dataclass

Values = dict[str, float]
SUBJECT = "octants"


@dataclass(frozen=True)
class TimesBetter:
    """At least `times` faster (or smaller) than `than`."""

    times: float
    than: str

    def __str__(self) -> str:
        return f"{self.times:g}× better than {self.than}"

    def reached(self, values: Values) -> bool | None:
        if SUBJECT not in values or self.than not in values:
            return None
        return values[self.than] / values[SUBJECT] >= self.times


@dataclass(frozen=True)
class SpeedOf:
    """At least `fraction` of the speed of `of`."""

    fraction: float
    of: str

    def __str__(self) -> str:
        return f"{self.fraction:g} of {self.of.upper() if self.of == 'c' else self.of}"

    def reached(self, values: Values) -> bool | None:
        if SUBJECT not in values or self.of not in values:
            return None
        return values[self.of] / values[SUBJECT] >= self.fraction


@dataclass(frozen=True)
class Under:
    """Below a fixed limit; `text` is the limit as a person writes it."""

    limit: float
    text: str

    def __str__(self) -> str:
        return f"under {self.text}"

    def reached(self, values: Values) -> bool | None:
        return values[SUBJECT] < self.limit if SUBJECT in values else None


@dataclass(frozen=True)
class Rate:
    """At least `per_second` bytes per second, for a call that moves `bytes_moved`."""

    bytes_moved: int
    per_second: float

    def __str__(self) -> str:
        return f"at least {self.per_second / 1e9:g} GB/s"

    def reached(self, values: Values) -> bool | None:
        return self.bytes_moved / values[SUBJECT] >= self.per_second if SUBJECT in values else None


Target = TimesBetter | SpeedOf | Under | Rate
