"""What quantised types make of numbers, in Python."""

import numpy as np


def wrapped(value: int, bits: int, signed: bool) -> int:
    """What `quant.int` makes of a number."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def rounded_fixed(value, bits: int, signed: bool, scale: float):
    """What `quant.fixed` makes of a number, in the precision that the number has."""
    kind = type(value)
    least, greatest = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    steps = np.sign(value) * np.floor(np.abs(value) / kind(scale) + kind(0.5))
    return kind(np.clip(steps, least, greatest) * kind(scale))


def rounded_float(value, exponent, fraction, signed):
    """What `quant.float` makes of a number."""
    digits, bias = fraction - signed, 2 ** (exponent - 1) - 1
    if value == 0 or (value < 0 and not signed):
        return 0.0
    power = np.frexp(abs(value))[1] - 1
    size = np.floor(abs(value) * 2.0 ** (digits - power) + 0.5) * 2.0 ** (power - digits)
    if np.frexp(size)[1] - 1 + bias <= 0:
        return 0.0
    return np.sign(value) * min(size, (2 - 2.0**-digits) * 2.0 ** (2**exponent - 1 - bias))


def rounded_together(values, exponent, fractions, signed):
    """The same of numbers that share an exponent."""
    bias = 2 ** (exponent - 1) - 1
    values = [value if s or value > 0 else 0.0 for value, s in zip(values, signed, strict=True)]
    powers = [np.frexp(abs(value))[1] - 1 + bias for value in values if value]
    greatest = min(max([0, *powers]), 2**exponent - 1)
    if greatest == 0:
        return [0.0] * len(values)
    results = []
    for value, fraction, s in zip(values, fractions, signed, strict=True):
        digits = fraction - s
        unit = 2.0 ** (greatest - bias - (digits - 1))
        results.append(np.sign(value) * min(np.floor(abs(value) / unit + 0.5), 2**digits - 1) * unit)
    return results
