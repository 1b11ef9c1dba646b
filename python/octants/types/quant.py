"""Types of quantised numbers: a few bits each in memory, ordinary numbers in calculations."""

from __future__ import annotations

from .. import _session
from .._fields.quantised import QuantisedType, quantised_type

__all__ = ["fixed", "float", "int"]


def int(bits, signed=True, compute=None) -> QuantisedType:  # noqa: A001
    """An integer of ``bits`` bits, calculated with as ``compute`` (the session's integers). What does not fit wraps around."""
    return quantised_type(bits, signed, compute, _default("default_ip", "i32"), None)


def fixed(bits, signed=True, max_value=1.0, compute=None, scale=None) -> QuantisedType:
    """A multiple of ``scale``, by default such that ``max_value`` is just out of reach; calculated with as ``compute`` (the session's reals).

    What is stored is rounded to the nearest multiple; what is out of range becomes the nearest number in range.
    """
    if not signed and bits == 64:
        raise ValueError("an unsigned quant.fixed has at most 63 bits")
    if scale is None:
        scale = max_value / 2 ** (bits - 1 if signed else bits)
    return quantised_type(bits, signed, compute, _default("default_fp", "f32"), scale * 1.0)


def float(exp, frac, signed=True, compute=None):  # noqa: A001
    """Not in Octants yet."""
    from ..exceptions import OctantsRuntimeError

    raise OctantsRuntimeError("oc.types.quant.float is not in Octants yet; use oc.types.quant.fixed")


def _default(option: str, fallback: str) -> str:
    return fallback if _session.cfg is None else getattr(_session.cfg, option).name
