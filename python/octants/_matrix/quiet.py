"""Calls of numpy's functions without its warnings about infinities and NaN, of which kernels say nothing either."""

from __future__ import annotations


def _by_errstate():
    """The way that numpy documents. It takes 2.3 µs, six times as long as an addition of short vectors."""
    import numpy

    def call(function, *operands):
        with numpy.errstate(all="ignore"):
            return function(*operands)

    return call


def _by_context():
    """What ``numpy.errstate`` does, with the state made once: 0.3 µs. ``None`` if numpy has it in another way."""
    import numpy

    try:
        from numpy._core._ufunc_config import _extobj_contextvar, _make_extobj  # type: ignore[attr-defined]

        state = _make_extobj(all="ignore")
        enter, leave = _extobj_contextvar.set, _extobj_contextvar.reset
    except (ImportError, TypeError, AttributeError):
        return None

    def call(function, *operands):
        token = enter(state)
        try:
            return function(*operands)
        finally:
            leave(token)

    ignores_all = set(call(numpy.geterr).values()) == {"ignore"}
    return call if ignores_all else None


def _first_call(function, *operands):
    # numpy is imported when something of it is used.
    global quietly
    quietly = _by_context() or _by_errstate()
    return quietly(function, *operands)


quietly = _first_call
