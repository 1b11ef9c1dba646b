"""Names of the kernel language that are functions: math, casts, atomics, loops, compile-time values.

Inside a kernel the compiler recognises each by its mark ``__octants__`` and never runs the Python body. On the host the body
runs: through numpy where that has a meaning, else it says that the name belongs in a kernel.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import math

from .._matrix import Matrix, Vector
from .._matrix.elementwise import ELEMENTWISE, apply
from .._octants import Expr, trace_call
from ..exceptions import OctantsSyntaxError, OctantsTypeError


def _numpy():
    import numpy

    return numpy


def _marked(name: str):
    """Gives a function its mark. Called from compile-time Python code with a value of the kernel, it becomes part of the kernel."""

    def mark(function):
        def call(*args, **kwargs):
            has_matrix = False
            for argument in (*args, *kwargs.values()):
                if type(argument) is Expr:
                    return trace_call(call, args, kwargs)
                has_matrix = has_matrix or isinstance(argument, Matrix)
            if has_matrix and name in ELEMENTWISE:
                return apply(name, function, args, kwargs)
            return function(*args, **kwargs)

        setattr(call, "__octants__", name)  # noqa: B010
        call.__name__, call.__qualname__, call.__doc__ = name, name, function.__doc__
        call.__module__ = function.__module__
        return call

    return mark


def _only_in_kernels(name: str) -> OctantsSyntaxError:
    return OctantsSyntaxError(f"oc.{name} can only be used inside a kernel or func")


# ---- math ----------------------------------------------------------------------------------------------------------------


@_marked("sin")
def sin(x):
    """Sine of a real."""
    return _numpy().sin(x)


@_marked("cos")
def cos(x):
    """Cosine of a real."""
    return _numpy().cos(x)


@_marked("tan")
def tan(x):
    """Tangent of a real."""
    return _numpy().tan(x)


@_marked("tanh")
def tanh(x):
    """Hyperbolic tangent of a real."""
    return _numpy().tanh(x)


@_marked("asin")
def asin(x):
    """Arcsine of a real."""
    return _numpy().arcsin(x)


@_marked("acos")
def acos(x):
    """Arccosine of a real."""
    return _numpy().arccos(x)


@_marked("erf")
def erf(x):
    """The error function of a real."""
    numpy = _numpy()
    x = numpy.asarray(x)
    result = numpy.vectorize(math.erf, otypes=[float])(x)
    return result.astype(x.dtype if x.dtype.kind == "f" else float)[()]


@_marked("atan2")
def atan2(x1, x2):
    """The angle of the point ``(x2, x1)``."""
    return _numpy().arctan2(x1, x2)


@_marked("exp")
def exp(x):
    """e to the power of ``x``."""
    return _numpy().exp(x)


@_marked("log")
def log(x):
    """Natural logarithm."""
    return _numpy().log(x)


@_marked("sqrt")
def sqrt(x):
    """Square root."""
    return _numpy().sqrt(x)


@_marked("rsqrt")
def rsqrt(x):
    """One over the square root."""
    return 1 / _numpy().sqrt(x)


@_marked("floor")
def floor(x, dtype=None):
    """The greatest integer not above ``x``, as a real or as ``dtype``."""
    return _typed(_numpy().floor(x), dtype)


@_marked("ceil")
def ceil(x, dtype=None):
    """The least integer not below ``x``, as a real or as ``dtype``."""
    return _typed(_numpy().ceil(x), dtype)


#: Digits behind the point of reals that have fewer than Python's own, by numpy's letters for them.
_FRACTION_DIGITS = {"e": 10, "f": 23}


@_marked("round")
def round(x, dtype=None):  # noqa: A001
    """The nearest integer, halves away from zero, as a real or as ``dtype``."""
    np = _numpy()
    # The number before a half: with a half itself, the sum may be rounded up to the next integer.
    kind = getattr(x, "dtype", None)
    digits = None if kind is None else _FRACTION_DIGITS.get(kind.char)
    before_half = 0.5 - 2.0**-54 if kind is None or digits is None else kind.type(0.5 - 2.0 ** -(digits + 2))
    return _typed(np.trunc(x + np.copysign(before_half, x)), dtype)


@_marked("abs")
def abs(x):  # noqa: A001
    """Magnitude."""
    return _numpy().abs(x)


@_marked("min")
def min(x, *others):  # noqa: A001
    """The least of its arguments."""
    return _extremum("minimum", x, others)


@_marked("max")
def max(x, *others):  # noqa: A001
    """The greatest of its arguments."""
    return _extremum("maximum", x, others)


def _extremum(name, x, others):
    """Of numbers of several types, the result has the type in which they meet."""
    return functools.reduce(getattr(_numpy(), name), others, x)


@_marked("pow")
def pow(base, exponent):  # noqa: A001
    """``base ** exponent``."""
    return base**exponent


@_marked("select")
def select(cond, x1, x2):
    """``x1`` where ``cond`` holds, else ``x2``; both are evaluated."""
    return _numpy().where(cond, x1, x2)[()]


@_marked("raw_div")
def raw_div(x1, x2):
    """Division as in C: integers truncate toward zero."""
    if isinstance(x1, int) and isinstance(x2, int):
        quotient = builtins.abs(x1) // builtins.abs(x2)
        return quotient if (x1 < 0) == (x2 < 0) else -quotient
    np = _numpy()
    if all(np.issubdtype(np.asarray(x).dtype, np.integer) for x in (x1, x2)):
        return (x1 - np.fmod(x1, x2)) // x2
    return x1 / x2


@_marked("raw_mod")
def raw_mod(x1, x2):
    """Remainder as in C: it has the sign of ``x1``."""
    return x1 - x2 * raw_div(x1, x2) if isinstance(x1, int) and isinstance(x2, int) else _numpy().fmod(x1, x2)


@_marked("bit_shr")
def bit_shr(x1, x2):
    """Shift right with zeros coming in, whatever the sign of ``x1``."""
    np = _numpy()
    if not isinstance(x1, np.integer):
        return (x1 & 0xFFFFFFFF) >> x2
    unsigned = np.dtype(f"u{x1.dtype.itemsize}")
    return (x1.view(unsigned) >> unsigned.type(x2)).view(x1.dtype)


@_marked("zero")
def zero(x):
    """Zero of the type of ``x``."""
    return type(x)(0)


@_marked("one")
def one(x):
    """One of the type of ``x``."""
    return type(x)(1)


# ---- types ---------------------------------------------------------------------------------------------------------------


def _typed(x, dtype):
    return x if dtype is None else cast(x, dtype)


@_marked("cast")
def cast(x, dtype):
    """``x`` converted by value to ``dtype``."""
    from .._matrix.conversion import converted
    from ..types import to_numpy_type

    wanted = _numpy().dtype(to_numpy_type(dtype))
    if (
        isinstance(x, int)
        and not -(2**63) <= x < 2**63
        and wanted.kind in "iu"
        and not (wanted == "uint64" and 0 <= x < 2**64)
    ):
        raise OverflowError(f"{x} exceeded the range of specified dtype: {dtype}")
    return converted(_numpy().asarray(x), wanted)[()]


@_marked("bit_cast")
def bit_cast(x, dtype):
    """The bits of ``x`` read as ``dtype``, which must be as wide."""
    from ..types import to_numpy_type

    bits = _numpy().dtype(to_numpy_type(dtype))
    numbers = _numpy().asarray(x)
    if type(x) in (int, float) and (type(x) is int or bits.itemsize > 1):
        # A number of Python's has the width that is asked for.
        kind = "f" if type(x) is float else "i" if x < 0 else "u"
        numbers = _numpy().asarray(x, f"{kind}{bits.itemsize}")
    if numbers.dtype.itemsize != bits.itemsize:
        raise OctantsTypeError(f"bit_cast needs types of one width, not {numbers.dtype} and {dtype}")
    return numbers.view(bits)[()]


# ---- atomics -------------------------------------------------------------------------------------------------------------


def _atomic(name: str, meaning: str):
    def atomic(x, y):
        raise _only_in_kernels(name)

    atomic.__doc__ = f"``x = {meaning}`` as one indivisible step; gives the old value of ``x``."
    return _marked(name)(atomic)


atomic_add = _atomic("atomic_add", "x + y")
atomic_sub = _atomic("atomic_sub", "x - y")
atomic_mul = _atomic("atomic_mul", "x * y")
atomic_min = _atomic("atomic_min", "min(x, y)")
atomic_max = _atomic("atomic_max", "max(x, y)")
atomic_and = _atomic("atomic_and", "x & y")
atomic_or = _atomic("atomic_or", "x | y")
atomic_xor = _atomic("atomic_xor", "x ^ y")
atomic_exchange = _atomic("atomic_exchange", "y")


@_marked("atomic_cas")
def atomic_cas(x, expected, desired):
    """Stores ``desired`` in ``x`` if it holds ``expected``, as one indivisible step; gives the old value."""
    raise _only_in_kernels("atomic_cas")


@_marked("atomic_cas_word")
def atomic_cas_word(x, expected, desired):
    """``atomic_cas`` of unsigned integers of any width: of words that hold several numbers."""
    raise _only_in_kernels("atomic_cas_word")


@_marked("volatile_load")
def volatile_load(target):
    """Reads an array element anew each time: never merged, moved or cached."""
    raise _only_in_kernels("volatile_load")


# ---- random numbers ------------------------------------------------------------------------------------------------------


@_marked("random")
def random(dtype=float):
    """A random number: a real in [0, 1), or an integer of all values of its type. Each iteration of a loop draws its own."""
    from .._matrix.promotion import data_type

    np = _numpy()
    scalar = data_type(dtype)
    if scalar.name == "u1":
        raise OctantsSyntaxError("oc.random does not give booleans; compare a real: oc.random() < 0.5")
    if not scalar.is_integral:
        return scalar(np.random.random())
    info = np.iinfo(scalar.numpy_name)
    return scalar(int(np.random.default_rng().integers(info.min, info.max, dtype=scalar.numpy_name, endpoint=True)))


# ---- clocks --------------------------------------------------------------------------------------------------------------


@_marked("clock_counter")
def clock_counter():
    """A counter of the device that grows with time, as ``i64``: the difference of two readings tells how long something took."""
    raise _only_in_kernels("clock_counter")


def clock_freq_hz() -> float:
    """How often in a second ``clock_counter`` counts at the device's nominal speed; known on CUDA devices only. A constant in a kernel."""
    from .._session import runtime

    rate = runtime.clock_rate
    if rate is None:
        raise NotImplementedError(
            f"oc.clock_freq_hz is known on CUDA devices only, not on {runtime.arch or 'no device'}"
        )
    return builtins.float(rate)


# ---- loops and compile-time values ---------------------------------------------------------------------------------------


@_marked("static")
def static(x, *others):
    """Evaluates its argument while compiling: a condition picks a branch, a loop is unrolled."""
    return (x, *others) if others else x


@_marked("static_assert")
def static_assert(cond, msg=None):
    """Refuses the program while compiling if ``cond`` is false."""
    assert cond, msg


@_marked("library_assert")
def library_assert(condition, message):
    """An assertion that is compiled in without debug mode, too. Every launch of its kernel is waited for."""
    raise _only_in_kernels("library_assert")


@_marked("deprecated")
def deprecated(old, new):
    """Warns of the call of the function of the package's that says so, while compiling."""
    raise _only_in_kernels("deprecated")


@_marked("static_print")
def static_print(*args, sep=" ", end="\n"):
    """Prints while compiling."""
    print(*args, sep=sep, end=end)


@_marked("grouped")
def grouped(x):
    """Iterates with one vector index in place of one variable for each axis."""
    return (Vector(index) for index in x) if isinstance(x, ndrange) and x.bounds else x


@_marked("loop_config")
def loop_config(
    *, block_dim=None, serialize=False, parallelize=None, block_dim_adaptive=True, bit_vectorize=False, name=None
):
    """Says how the next ``for`` runs."""
    raise _only_in_kernels("loop_config")


class _StreamBlock(contextlib.nullcontext):
    """What ``stream_parallel()`` gives on the host."""

    def __repr__(self):
        return "oc.stream_parallel()"


@_marked("stream_parallel")
def stream_parallel():
    """A block of a kernel that runs at the same time as the blocks beside it: ``with oc.stream_parallel():``.

    One block is one branch, on one stream: loops and statements in it run in order. Consecutive blocks are concurrent. All top-level
    statements of the kernel must be such blocks. Branches must be independent of each other. On the host it does nothing.
    """
    return _StreamBlock()


class ndrange:
    """The product of ranges: ``for i, j in oc.ndrange(n, (1, m))``. On the host, an iterator of tuples."""

    __octants__ = "ndrange"

    def __init__(self, *bounds, axes=None):
        self.bounds = [_bounds_of(b) for b in bounds]
        self.axes = None if axes is None else _axes_of(axes, len(bounds))

    def __iter__(self):
        from itertools import product

        order = self.axes or tuple(range(len(self.bounds)))
        for nested in product(*(range(*self.bounds[axis]) for axis in order)):
            index = [0] * len(order)
            for axis, value in zip(order, nested, strict=True):
                index[axis] = value
            yield tuple(index)

    def constant(self) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...] | None]:
        """Bounds and order of the axes: all that it is."""
        return tuple(self.bounds), self.axes

    def __repr__(self):
        return f"ndrange({', '.join(map(repr, self.bounds))})"


def _bounds_of(bound) -> tuple[int, int]:
    from operator import index

    try:
        if isinstance(bound, (tuple, list)):
            begin, end = (index(b) for b in bound)
        else:
            begin, end = 0, index(bound)
    except (TypeError, ValueError):
        from ..exceptions import OctantsTypeError

        raise OctantsTypeError(f"oc.ndrange takes integers or (begin, end) pairs of them, not {bound!r}") from None
    return begin, builtins.max(begin, end)


def _axes_of(axes, count: int) -> tuple[int, ...]:
    from ..exceptions import OctantsTypeError

    axes = tuple(axes)
    for axis in axes:
        if isinstance(axis, bool) or not isinstance(axis, int):
            raise OctantsTypeError(f"axes={axes!r} must contain integers, not {axis!r}")
    if builtins.sorted(axes) != list(range(count)):
        raise OctantsSyntaxError(f"axes={axes!r} must be a permutation of the {count} axes")
    return axes
