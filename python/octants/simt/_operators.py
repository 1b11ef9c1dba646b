# type: ignore  (in the kernel language annotations are values, and what is static decides the types)
"""What reductions and scans combine values by, each of which is associative, and what they make of values first."""

from __future__ import annotations

from .._language import cast, static
from .._session import func
from ..types import Template
from ._compile_time import is_scalar_type


@func
def of_type(value, dtype: Template):
    """The value as one of this type of numbers; as it is, if that is a type of vectors or matrices."""
    if static(is_scalar_type(dtype)):
        return cast(value, dtype)
    return value


@func
def added(a, b):
    return a + b


@func
def multiplied(a, b):
    return a * b


@func
def lesser(a, b):
    return min(a, b)


@func
def greater(a, b):
    return max(a, b)


@func
def bits_of_both(a, b):
    return a & b


@func
def bits_of_either(a, b):
    return a | b


@func
def bits_of_one(a, b):
    return a ^ b
