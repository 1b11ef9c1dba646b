# type: ignore  (in the kernel language annotations are values)
"""Normally distributed random numbers, in the kernel language."""

from __future__ import annotations

from .. import _language as lang
from .._matrix.promotion import data_type
from ..types import Template
from .pyfunc import pyfunc


def real_type(dt):
    return data_type(float if dt is None else dt)


@pyfunc
def randn(dt: Template = None):
    """A random number with mean 0 and variance 1, by the method of Box and Muller."""
    return normal(real_type(dt))


@pyfunc
def normal(dt: Template):
    # In (0, 1], so that the logarithm is finite.
    uniform = dt(1.0) - lang.random(dt)
    angle = lang.random(dt) * dt(6.283185307179586)
    return lang.sqrt(dt(-2.0) * lang.log(uniform)) * lang.cos(angle)
