"""The exceptions that a refused or failed program raises.

Every message shows a code, the user's file and line with the offending part underlined, and help. Each class is also the
built-in exception that a Python programmer would expect (``SyntaxError``, ``TypeError``, …).
"""

from __future__ import annotations


class OctantsCompilationError(Exception):
    """A program that cannot be compiled. The base of all errors found while compiling."""


class OctantsSyntaxError(OctantsCompilationError, SyntaxError):
    """A construct that the kernel language does not have, or a wrong signature or call."""


class OctantsNameError(OctantsCompilationError, NameError):
    """A name that is not defined where it is used."""


class OctantsIndexError(OctantsCompilationError, IndexError):
    """An access with the wrong number of indices."""


class OctantsTypeError(OctantsCompilationError, TypeError):
    """An operation on types that it does not take."""


class OctantsRuntimeError(RuntimeError):
    """A failure while running: a device error, a stale handle, memory that could not be had."""


class OctantsDeviceUnavailable(OctantsRuntimeError):
    """A device that was asked for cannot be opened: its driver is missing or too old, or there is no such device."""


class OctantsAssertionError(OctantsRuntimeError, AssertionError):
    """An assertion or a bounds check that failed inside a kernel."""


class OctantsRuntimeTypeError(OctantsRuntimeError, TypeError):
    """A call with an argument of the wrong type."""


class OctantsDataTypeError(TypeError, ValueError):
    """An object where a data type such as ``oc.f32`` is asked for."""


# Names that programs written for Quadrants catch.
QuadrantsCompilationError = OctantsCompilationError
QuadrantsSyntaxError = OctantsSyntaxError
QuadrantsNameError = OctantsNameError
QuadrantsIndexError = OctantsIndexError
QuadrantsTypeError = OctantsTypeError
QuadrantsRuntimeError = OctantsRuntimeError
QuadrantsAssertionError = OctantsAssertionError
QuadrantsRuntimeTypeError = OctantsRuntimeTypeError


def __getattr__(name: str):
    # Names that programs written for Taichi catch.
    ours = globals().get("Octants" + name[len("Taichi") :]) if name.startswith("Taichi") else None
    if ours is None:
        raise AttributeError(f"module 'octants.exceptions' has no attribute {name!r}")
    return ours
