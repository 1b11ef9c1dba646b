"""MPM-88 on fields: one substep of {particles:,} particles of a liquid on a {cells} x {cells} grid, by struct-for."""

from harness.programs import about
from harness.targets import TimesBetter

_arrays = about("mpm88")

TITLE = "MPM-88 substep, fields"
GROUP = "throughput"
ORDER = 11
SIZES = _arrays.SIZES | {"gpu": {"particles": 1 << 20, "cells": 512}}
OUTPUTS = _arrays.OUTPUTS
TOLERANCE = _arrays.TOLERANCE
FAST_MATH = True
TARGETS = (TimesBetter(3, "quadrants"),)
COMPILE = True
COMPILE_TARGETS = (TimesBetter(4, "quadrants"),)

inputs, reference, compared = _arrays.inputs, _arrays.reference, _arrays.compared
