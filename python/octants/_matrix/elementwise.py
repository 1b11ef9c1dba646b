"""Math functions and casts of the language applied to vectors and matrices on the host: entry by entry, in numpy."""

from __future__ import annotations

from ..exceptions import OctantsTypeError
from . import TYPES, Matrix, cast_array, matrix_over, quiet
from .operators import are_alike, declared_type, numpy_function, operand, same_shape
from .promotion import data_type, numpy_type, promoted

#: Names of the language's functions that go entry by entry.
ELEMENTWISE = frozenset(
    [
        "abs", "acos", "asin", "atan2", "bit_cast", "bit_shr", "cast", "ceil", "cos", "erf", "exp", "floor", "isinf", "isnan", "log", "log2",
        "max", "min", "one", "pow", "raw_div", "raw_mod", "round", "rsqrt", "select", "sin", "sqrt", "tan", "tanh", "zero",
    ]
)  # fmt: skip


#: Functions of one real that are one of numpy's, with its name for them.
_OF_ONE_REAL = {
    "acos": "arccos", "asin": "arcsin", "ceil": "ceil", "cos": "cos", "exp": "exp", "floor": "floor", "log": "log", "log2": "log2",
    "sin": "sin", "sqrt": "sqrt", "tan": "tan", "tanh": "tanh",
}  # fmt: skip
_OF_TWO = {"max": "fmax", "min": "fmin"}


def _quick(name: str, function, args):
    """A function of one matrix of reals, or of two that are alike, whose result is of their type; ``None`` for all others."""
    first = args[0]
    if name == "select":
        return _quick_select(*args)
    if type(first) not in TYPES or first.entries.dtype.char not in "fd":
        return None
    entries, dt = first.entries, first.dt
    if name == "round" and len(args) == 1:
        return matrix_over(function(entries), dt)
    if len(args) == 1:
        ufunc, operands = _OF_ONE_REAL.get(name), (entries,)
    elif len(args) == 2 and are_alike(first, args[1]):
        ufunc, operands = _OF_TWO.get(name), (entries, args[1].entries)
    else:
        return None
    if ufunc is None:
        return None
    return matrix_over(quiet.quietly(numpy_function(ufunc), *operands), dt)


def _quick_select(condition=None, a=None, b=None):
    if type(condition) not in TYPES or not are_alike(a, b) or condition.entries.shape != a.entries.shape:  # type: ignore[union-attr]
        return None
    return matrix_over(numpy_function("where")(condition.entries, a.entries, b.entries), a.dt)  # type: ignore[union-attr]


def apply(name: str, function, args, kwargs):
    """Calls one of these functions, some argument of it being a matrix."""
    if not kwargs and (quick := _quick(name, function, args)) is not None:
        return quick
    if name in ("cast", "bit_cast"):
        return _convert(name, *args, **kwargs)
    if name in ("zero", "one"):
        return _fill(args[0], 0 if name == "zero" else 1)
    if name == "pow":
        return args[0] ** args[1]
    if name == "abs":
        return abs(args[0])
    if "dtype" in kwargs or (name in ("floor", "ceil", "round") and len(args) == 2):
        dtype = kwargs["dtype"] if kwargs else args[1]
        return _convert("cast", apply(name, function, args[:1], {}), dtype)  # pyright: ignore[reportArgumentType]
    return _over_arrays(name, function, [_operand(name, argument) for argument in args])


def _operand(name: str, value):
    found = operand(value)
    if found is None:
        raise OctantsTypeError(f"oc.{name} takes numbers, vectors and matrices, not {type(value).__name__}")
    return found


def _over_arrays(name: str, function, operands):
    import numpy

    arrays = [array for array, _ in operands]
    same_shape(arrays, name)
    if name == "select":
        condition, arrays, operands = arrays[0], arrays[1:], operands[1:]
    else:
        condition = None
    common = promoted([(array.dtype, dt is not None) for array, dt in operands])
    if common.kind != "f" and name in ("sqrt", "rsqrt", "exp", "log", "log2", "atan2"):
        common = numpy_type(float) if any(dt is not None for _, dt in operands) else numpy.dtype(numpy.float64)
    arrays = [cast_array(array, common) for array in arrays]
    declared = [dt for _, dt in operands]
    with numpy.errstate(all="ignore"):
        if condition is not None:
            result = numpy.where(condition != 0, *arrays)
        elif name in ("min", "max"):
            result = _fold(numpy.fmin if name == "min" else numpy.fmax, arrays)
        elif name in ("raw_div", "raw_mod") and common.kind != "f":
            remainder = numpy.fmod(*arrays)
            result = remainder if name == "raw_mod" else (arrays[0] - remainder) // arrays[1]
        elif name == "bit_shr":
            unsigned = f"u{common.itemsize}"
            result = (arrays[0].view(unsigned) >> arrays[1].view(unsigned)).view(common)
        else:
            result = function(*arrays)
    return matrix_over(numpy.asarray(result), declared_type(result.dtype, *declared))


def _fold(binary, arrays):
    result = arrays[0]
    for array in arrays[1:]:
        result = binary(result, array)
    return result


def _convert(name: str, x: Matrix, dtype):
    target = numpy_type(dtype)
    if name == "cast":
        return matrix_over(cast_array(x.entries, target), data_type(dtype))
    if target.itemsize != x.entries.dtype.itemsize:
        raise OctantsTypeError(f"oc.bit_cast needs types of one width, not {x.entries.dtype} and {target}")
    return matrix_over(x.entries.view(target).copy(), data_type(dtype))


def _fill(x: Matrix, value: int):
    import numpy

    return matrix_over(numpy.full_like(x.entries, value), x.dt)
