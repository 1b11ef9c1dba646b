"""Sums of arrays in place, for gradients. Kernels, which are made when they are first needed."""

from .._language import grouped
from .._session import kernel
from ..types import ndarray, template


@kernel
def add_fields(to: template(), what: template()):  # type: ignore[valid-type]
    """Adds one field to another."""
    for index in grouped(to):
        to[index] += what[index]


@kernel
def copy_arrays(to: ndarray(), what: ndarray()):  # type: ignore[valid-type]
    """Copies one ndarray to another, so that derivatives are copied, too."""
    for index in grouped(to):
        to[index] = what[index]


@kernel
def add_arrays(to: ndarray(), what: ndarray()):  # type: ignore[valid-type]
    """Adds one ndarray to another."""
    for index in grouped(to):
        to[index] += what[index]
