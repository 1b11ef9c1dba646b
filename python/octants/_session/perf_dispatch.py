"""``oc.perf_dispatch``: one name for several implementations, of which the fastest here is called.

Knows nothing of kernels: an implementation is whatever can be called.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable
from operator import is_ as _is

from .. import _logging, _session
from ..exceptions import OctantsRuntimeError, OctantsSyntaxError
from .streams import Stream

#: Calls after which the implementations are timed anew, where the program says neither calls nor seconds.
_REPEAT_AFTER_COUNT = 300


def perf_dispatch(
    *,
    get_geometry_hash: Callable[..., Hashable],
    first_warmup: int = 1,
    warmup: int = 0,
    active: int = 1,
    repeat_after_count: int | None = None,
    repeat_after_seconds: float | None = None,
):
    """Makes a function the name of several implementations, which ``register`` adds; a call goes to the fastest of them.

    ``get_geometry_hash`` says for which arguments the same one is the fastest. For each of its values the implementations take turns:
    ``first_warmup`` calls that are not timed, then ``active`` timed ones. They are timed anew after so many calls or seconds; a number that
    is not positive says never. If neither is given, after 300 calls.

    >>> @oc.perf_dispatch(get_geometry_hash=lambda x: x.shape)
    ... def solve(x): ...
    >>> @solve.register
    ... @oc.kernel
    ... def by_rows(x: oc.types.NDArray[oc.f32, 2]): ...
    """
    if repeat_after_count is None and repeat_after_seconds is None:
        repeat_after_count = _REPEAT_AFTER_COUNT

    def decorate(prototype: Callable) -> PerformanceDispatcher:
        return PerformanceDispatcher(
            prototype,
            get_geometry_hash,
            (first_warmup, warmup, active),
            (repeat_after_count or 0, repeat_after_seconds or 0.0),
        )

    return decorate


def _setting(name: str) -> str:
    """A variable of the environment, under our name or that of Quadrants."""
    return os.environ.get(f"OC_PERFDISPATCH_{name}") or os.environ.get(f"QD_PERFDISPATCH_{name}", "")


class Implementation:
    """A function that was registered, with what says for which arguments it can be used."""

    def __init__(self, function: Callable, is_compatible: Callable[..., bool] | None):
        self.__wrapped__ = function
        self.__name__ = _name(function)
        self.__doc__ = function.__doc__
        self.is_compatible = is_compatible

    def __call__(self, *args, **kwargs):
        return self.__wrapped__(*args, **kwargs)

    def __repr__(self):
        return f"<implementation {self.__name__}>"


class _Trials:
    """The turns of the implementations for one geometry."""

    def __init__(self, compatible: list[Implementation], warmup: int):
        self.compatible = compatible
        self.warmup = warmup
        self.turn = 0
        self.seconds = [0.0] * len(compatible)


class _Choice:
    """What was chosen for one geometry, and how long it has been in use."""

    def __init__(self, implementation: Implementation):
        self.implementation = implementation
        self.calls = 0
        self.since = time.monotonic()


class PerformanceDispatcher:
    """What ``oc.perf_dispatch`` makes of a function. It is not thread-safe."""

    def __init__(self, prototype, get_geometry_hash, turns: tuple[int, int, int], repeat: tuple[int, float]):
        self.__wrapped__ = prototype
        self.__name__ = _name(prototype)
        self.__doc__ = prototype.__doc__
        self._parameters = _parameters(prototype)
        self._geometry = get_geometry_hash
        self._first_warmup, self._warmup, self._active = turns
        self._repeat_calls, self._repeat_seconds = repeat
        self._implementations: list[Implementation] = []
        self._trials: dict[Hashable, _Trials] = {}
        self._choices: dict[Hashable, _Choice] = {}
        #: Objects that were arguments of a call for which there is one implementation only, and that one.
        self._only: tuple[tuple, dict, Implementation] | None = None
        self._forced: Implementation | None = None
        self._looked_at_environment = False

    def register(self, function: Callable | None = None, *, is_compatible: Callable[..., bool] | None = None):
        """Adds an implementation. ``is_compatible`` is called with the arguments of a call, and says whether this one can do it."""
        if function is None:
            return lambda decorated: self.register(decorated, is_compatible=is_compatible)
        parameters = _parameters(getattr(function, "__wrapped__", function))
        if sorted(parameters) != sorted(self._parameters):
            raise OctantsSyntaxError(
                f"[PERFDISPATCH_ANNOTATION_SEQUENCE_MISMATCH] {_name(function)} takes {_listed(parameters)}, and the prototype "
                f"{self.__name__} {_listed(self._parameters)}"
            )
        made = Implementation(function, is_compatible)
        self._implementations.append(made)
        self._only = None
        self._tell(f"registered {made.__name__}")
        return made

    def __call__(self, *args, **kwargs):
        if not self._looked_at_environment:
            self._looked_at_environment = True
            self._forced = self._asked_for()
        if self._forced is not None:
            return self._forced(*args, **kwargs)
        only = self._only
        if only is not None and _same(only, args, kwargs):
            return only[2].__wrapped__(*args, **kwargs)
        geometry = self._geometry(*args, **kwargs)
        choice = self._choices.get(geometry)
        if choice is not None and not self._is_worn(choice):
            return choice.implementation(*args, **kwargs)
        trials = self._trials.get(geometry)
        if trials is None:
            warmup = self._first_warmup if choice is None else self._warmup
            trials = _Trials(self._compatible(args, kwargs), warmup)
            if len(trials.compatible) == 1:
                self._only = (args, kwargs, trials.compatible[0])
                self._choose(geometry, trials.compatible[0])
                return trials.compatible[0](*args, **kwargs)
            self._trials[geometry] = trials
        return self._try(geometry, trials, args, kwargs)

    def _try(self, geometry: Hashable, trials: _Trials, args: tuple, kwargs: dict):
        """The next one's turn; after the last the fastest is chosen."""
        turn, which = divmod(trials.turn, len(trials.compatible))
        trials.turn += 1
        if turn < trials.warmup:
            return trials.compatible[which](*args, **kwargs)
        wait = _waiting_for(kwargs.get("qd_stream"))
        wait()
        start = time.perf_counter()
        result = trials.compatible[which](*args, **kwargs)
        wait()
        trials.seconds[which] += time.perf_counter() - start
        if trials.turn == (trials.warmup + self._active) * len(trials.compatible):
            del self._trials[geometry]
            fastest = min(range(len(trials.compatible)), key=lambda one: trials.seconds[one])
            self._choose(geometry, trials.compatible[fastest])
        return result

    def _choose(self, geometry: Hashable, implementation: Implementation) -> None:
        self._choices[geometry] = _Choice(implementation)
        self._tell(f"chose {implementation.__name__} of {len(self._implementations)}")

    def _is_worn(self, choice: _Choice) -> bool:
        """Whether the implementations are to be timed anew."""
        choice.calls += 1
        return (0 < self._repeat_calls <= choice.calls) or (0 < self._repeat_seconds <= time.monotonic() - choice.since)

    def _compatible(self, args: tuple, kwargs: dict) -> list[Implementation]:
        found = [
            one for one in self._implementations if one.is_compatible is None or one.is_compatible(*args, **kwargs)
        ]
        if not found:
            raise OctantsRuntimeError(
                f"No suitable functions were found: {self.__name__} has {len(self._implementations)}, and none takes these arguments"
            )
        return found

    def _asked_for(self) -> Implementation | None:
        """The implementation that ``OC_PERFDISPATCH_FORCE=name:implementation,...`` names for this function."""
        for entry in filter(None, map(str.strip, _setting("FORCE").split(","))):
            name, colon, wanted = map(str.strip, entry.partition(":"))
            if not colon:
                raise ValueError(f"OC_PERFDISPATCH_FORCE is a list of name:implementation, not {entry!r}")
            if name != self.__name__:
                continue
            for one in self._implementations:
                if one.__name__ == wanted:
                    print(f"perf_dispatch {self.__name__}: {wanted} is used, as OC_PERFDISPATCH_FORCE asks")
                    return one
            names = _listed([one.__name__ for one in self._implementations])
            print(f"perf_dispatch {self.__name__}: WARNING: OC_PERFDISPATCH_FORCE asks for {wanted}; there are {names}")
        return None

    def _tell(self, what: str) -> None:
        _logging.debug(f"perf_dispatch {self.__name__}: {what}")
        if _setting("PRINT_DEBUG") == "1" or _setting("FORCE"):
            print(f"perf_dispatch {self.__name__}: {what}")

    def __repr__(self):
        return f"<perf_dispatch {self.__name__}>"


def _same(only: tuple[tuple, dict, Implementation], args: tuple, kwargs: dict) -> bool:
    """Whether a call has the very objects of another one."""
    known, named, _ = only
    if len(args) != len(known) or len(kwargs) != len(named) or not all(map(_is, args, known)):
        return False
    return not kwargs or all(name in named and value is named[name] for name, value in kwargs.items())


def _waiting_for(stream) -> Callable[[], None]:
    """What waits for the stream that the implementations are called with: another one's work is no part of their time."""
    if stream is None:
        return _session.sync
    if not isinstance(stream, Stream):
        # Of another library.
        stream = Stream(stream)
    return stream.synchronize


def _name(function: Callable) -> str:
    return getattr(function, "__name__", repr(function))


def _parameters(function: Callable) -> list[str]:
    import inspect

    return list(inspect.signature(function).parameters)


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "nothing"
