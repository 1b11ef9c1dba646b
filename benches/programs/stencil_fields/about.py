"""Five-point stencil over {n:,} x {n:,} f32 by struct-for, from one field into another."""

from harness.programs import about
from harness.targets import SpeedOf, TimesBetter

_arrays = about("stencil")

TITLE = "stencil, fields"
GROUP = "throughput"
ORDER = 6
SIZES = _arrays.SIZES
OUTPUTS = _arrays.OUTPUTS
TOLERANCE = _arrays.TOLERANCE
TARGETS = (SpeedOf(0.9, "c"),)
COMPILE = True
COMPILE_TARGETS = (TimesBetter(6, "quadrants"),)

inputs, reference, bytes_moved = _arrays.inputs, _arrays.reference, _arrays.bytes_moved
