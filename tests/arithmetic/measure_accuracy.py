"""Measures how far a device's functions are from the exact results, and prints the table of docs/reference/accuracy.md with what was found.

python tests/arithmetic/measure_accuracy.py [--arch cuda] [--samples 4000000]

f16 is measured at every number there is, f32 and f64 at numbers that are dense in the middle and even in the exponent.
"""

import argparse
import warnings

import numpy as np
from test_accuracy import BINARY, CPU_BOUNDS, GPU_BOUNDS, UNARY, arguments

import octants as oc

# Each type with numpy's and with the one that its exact results are calculated in.
TYPES = {oc.f16: (np.float16, np.float64), oc.f32: (np.float32, np.float64), oc.f64: (np.float64, np.longdouble)}


def errors(got, exact):
    """In units of the last place. Results beyond the type's range, or below the normal ones, are left out."""
    info = np.finfo(got.dtype)
    told = (np.abs(exact) >= info.tiny) & (np.abs(exact) <= info.max)
    gap = np.spacing(np.abs(exact).astype(got.dtype)).astype(exact.dtype)
    error = np.abs(got.astype(exact.dtype) - exact) / gap
    return np.where(told, error, 0)


def every_half(low, high):
    bits = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    return bits[np.isfinite(bits) & (bits >= low) & (bits <= high) & (bits != 0)]


def one_argument(function, exact, limits, dtype, count):
    array = oc.types.ndarray(dtype=dtype, ndim=1)

    @oc.kernel
    def k(x: array, out: array):
        for i in range(x.shape[0]):
            out[i] = function(x[i])

    real, wide = TYPES[dtype]
    x = every_half(*limits) if dtype is oc.f16 else arguments(real, limits, np.random.default_rng(1), count)
    out = np.empty_like(x)
    k(x, out)
    return errors(out, exact(x.astype(wide))).max()


def two_arguments(function, exact, first, second, dtype, count):
    array = oc.types.ndarray(dtype=dtype, ndim=1)

    @oc.kernel
    def k(x: array, y: array, out: array):
        for i in range(x.shape[0]):
            out[i] = function(x[i], y[i])

    real, wide = TYPES[dtype]
    random = np.random.default_rng(2)
    if dtype is oc.f16:
        x, y = (random.choice(every_half(*limits), count) for limits in (first, second))
    else:
        x = arguments(real, first, random, count)
        y = random.permutation(arguments(real, second, random, count))
    out = np.empty_like(x)
    k(x, y, out)
    return errors(out, exact(x.astype(wide), y.astype(wide))).max()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--arch", default="cpu")
    parser.add_argument("--samples", type=int, default=1_000_000, help="a third of the arguments in f32 and f64")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    found = {}
    for fast in (False, True):
        oc.init(arch=getattr(oc, chosen.arch), fast_math=fast, enable_fallback=False, log_level="error")
        for dtype in TYPES:
            # The exact results in 80 bits take most of the time.
            count = chosen.samples // 10 if dtype is oc.f64 else chosen.samples
            for name, (function, exact, limits) in UNARY.items():
                found[name, fast, dtype] = one_argument(function, exact, limits, dtype, count)
            for name, (function, exact, first, second) in BINARY.items():
                found[name, fast, dtype] = two_arguments(function, exact, first, second, dtype, count)
    bounds = GPU_BOUNDS if chosen.arch == "cuda" else CPU_BOUNDS
    kinds = [(fast, dtype) for fast in (False, True) for dtype in TYPES]
    print(
        "| function | " + " | ".join(f"{dtype}{', fast_math' if fast else ''}" for fast, dtype in kinds) + " | stated |"
    )
    print("|---" * (len(kinds) + 2) + "|")
    for name, stated in bounds.items():
        cells = []
        for fast, dtype in kinds:
            error = float(found[name, fast, dtype])
            cells.append(f"{error:.2f}{' !' if error > stated[fast] + 1e-3 and dtype is not oc.f16 else ''}")
        print(f"| `{name}` | {' | '.join(cells)} | {stated[0]:g}, {stated[1]:g} |")


if __name__ == "__main__":
    main()
