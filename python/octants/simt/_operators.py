# type: ignore  (in the kernel language annotations are values, and what is static decides the types)
"""What reductions and scans combine values by. Each is associative."""

from __future__ import annotations

from .._session import func


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
