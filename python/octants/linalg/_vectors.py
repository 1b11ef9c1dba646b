"""Vectors as programs pass them to ``octants.linalg``: numpy arrays, arrays and fields; and the types that numbers may have."""

from __future__ import annotations

from typing import Any

import numpy

from .._arrays import Ndarray, ndarray
from .._fields.field import Field
from .._matrix.promotion import data_type, numpy_type
from .._tensor import Tensor
from ..exceptions import OctantsAssertionError, OctantsRuntimeError
from ..types import f32, f64


def real_type(dtype, what: str):
    """A type of reals that matrices and solvers have."""
    found = data_type(dtype)
    if found not in (f32, f64):
        raise OctantsRuntimeError(f"{what} has numbers of f32 or f64, not {found}")
    return found


def on_host(vector, size: int, dtype, what: str) -> numpy.ndarray:
    """The numbers of a vector."""
    if isinstance(vector, (Ndarray, Field, Tensor)):
        numbers = vector.to_numpy()
    elif isinstance(vector, numpy.ndarray):
        numbers = vector
    else:
        raise OctantsRuntimeError(
            f"{what} is a numpy array, an oc.ndarray, an oc.field or an oc.tensor of one axis, not {type(vector).__name__}"
        )
    if numbers.shape != (size,):
        raise OctantsAssertionError(f"{what} has shape {numbers.shape}, and needs {(size,)}")
    return numpy.ascontiguousarray(numbers, numpy_type(dtype))


def as_given(numbers: numpy.ndarray, given, dtype):
    """Numbers as an array if such a one was given, else as they are."""
    given = given._impl if isinstance(given, Tensor) else given
    if not isinstance(given, Ndarray):
        return numbers
    return array_of(numbers, dtype)


def array_of(numbers: numpy.ndarray, dtype) -> Any:
    """An array on the device with these numbers, or with a zero if there are none: an array has an element at least."""
    made = ndarray(dtype, max(1, len(numbers)))
    if len(numbers):
        made.from_numpy(numbers)
    return made
