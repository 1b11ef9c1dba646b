"""Types of quantised numbers: a few bits each in memory, ordinary numbers in calculations."""

from __future__ import annotations

from math import inf

from .. import _session
from .._fields.quantised import QuantisedType, quantised_type

__all__ = ["fixed", "float", "int"]


def int(bits, signed=True, compute=None) -> QuantisedType:  # noqa: A001
    """An integer of ``bits`` bits, calculated with as ``compute`` (the session's integers, unsigned ones where it is). What does not fit wraps around."""
    return quantised_type("int", bits, signed, compute, _default("default_ip" if signed else "default_up"))


def fixed(bits, signed=True, max_value=1.0, compute=None, scale=None) -> QuantisedType:
    """A multiple of ``scale``, by default such that ``max_value`` is just out of reach; calculated with as ``compute`` (the session's reals).

    What is stored is rounded to the nearest multiple; what is out of range becomes the nearest number in range.
    """
    if not signed and bits == 64:
        raise ValueError("an unsigned quant.fixed has at most 63 bits")
    for name, value in (("max_value", max_value), ("scale", scale)):
        # NaN is not above zero, either.
        if value is not None and not 0 < value < inf:
            raise ValueError(f"{name} is a number above 0, not {value!r}")
    if scale is None:
        scale = max_value / 2 ** (bits - 1 if signed else bits)
    return quantised_type("fixed", bits, signed, compute, _default("default_fp"), scale * 1.0)


def float(exp, frac, signed=True, compute=None) -> QuantisedType:  # noqa: A001
    """A real with an exponent of ``exp`` bits and a fraction of ``frac`` bits, of which one is the sign; calculated with as ``compute`` (the session's reals).

    The exponent is biased as that of IEEE numbers. What is stored is rounded to the nearest number, what is too large becomes the largest, and
    what is smaller than the smallest becomes zero.
    """
    made = quantised_type("float", frac, signed, compute, _default("default_fp"), exponent=exp)
    most_exp, most_digits = (11, 52) if made.compute.name == "f64" else (8, 23)
    if not 1 <= exp <= most_exp:
        raise ValueError(f"exp is from 1 to {most_exp} with compute={made.compute}, not {exp}")
    if frac - made.signed > most_digits:
        most = most_digits + made.signed
        raise ValueError(f"frac is at most {most} with compute={made.compute} and signed={made.signed}, not {frac}")
    return made


def _default(option: str) -> str:
    fallback = {"default_ip": "i32", "default_up": "u32", "default_fp": "f32"}[option]
    return fallback if _session.cfg is None else getattr(_session.cfg, option).name
