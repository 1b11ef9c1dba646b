"""Operators of vectors and matrices on the host: entry by entry, a number with every entry, and ``@``.

They run in numpy, with the type rules of kernels. Nothing is broadcast but numbers.
"""

from __future__ import annotations

from .. import _matrix
from .._octants import DataType, plain_array
from ..exceptions import OctantsTypeError
from . import quiet
from .promotion import default_integer, default_real, divided, left_type, numpy_type, of_numpy, powered, promoted

#: By numpy's name: the sign, and how the operands' types meet.
_ARITHMETIC = {
    "add": ("+", promoted),
    "subtract": ("-", promoted),
    "multiply": ("*", promoted),
    "divide": ("/", divided),
    "floor_divide": ("//", promoted),
    "remainder": ("%", promoted),
    "power": ("**", powered),
    "bitwise_and": ("&", promoted),
    "bitwise_or": ("|", promoted),
    "bitwise_xor": ("^", promoted),
    "left_shift": ("<<", left_type),
    "right_shift": (">>", left_type),
}
_OF_REALS = frozenset(["add", "subtract", "multiply", "divide", "floor_divide", "remainder", "power"])
_OF_INTEGERS = ("&", "|", "^", "<<", ">>")
_COMPARISONS = {
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal": "==",
    "not_equal": "!=",
}


class Operators:
    """What a matrix inherits to be an operand."""

    __slots__ = ()

    def __add__(self, other):
        return _binary("add", self, other)

    def __radd__(self, other):
        return _binary("add", other, self)

    def __iadd__(self, other):
        return _in_place("add", self, other)

    def __sub__(self, other):
        return _binary("subtract", self, other)

    def __rsub__(self, other):
        return _binary("subtract", other, self)

    def __isub__(self, other):
        return _in_place("subtract", self, other)

    def __mul__(self, other):
        return _binary("multiply", self, other)

    def __rmul__(self, other):
        return _binary("multiply", other, self)

    def __imul__(self, other):
        return _in_place("multiply", self, other)

    def __truediv__(self, other):
        return _binary("divide", self, other)

    def __rtruediv__(self, other):
        return _binary("divide", other, self)

    def __itruediv__(self, other):
        return _in_place("divide", self, other)

    def __floordiv__(self, other):
        return _binary("floor_divide", self, other)

    def __rfloordiv__(self, other):
        return _binary("floor_divide", other, self)

    def __ifloordiv__(self, other):
        return _in_place("floor_divide", self, other)

    def __mod__(self, other):
        return _binary("remainder", self, other)

    def __rmod__(self, other):
        return _binary("remainder", other, self)

    def __imod__(self, other):
        return _in_place("remainder", self, other)

    def __pow__(self, other):
        return _binary("power", self, other)

    def __rpow__(self, other):
        return _binary("power", other, self)

    def __ipow__(self, other):
        return _in_place("power", self, other)

    def __and__(self, other):
        return _binary("bitwise_and", self, other)

    def __rand__(self, other):
        return _binary("bitwise_and", other, self)

    def __iand__(self, other):
        return _in_place("bitwise_and", self, other)

    def __or__(self, other):
        return _binary("bitwise_or", self, other)

    def __ror__(self, other):
        return _binary("bitwise_or", other, self)

    def __ior__(self, other):
        return _in_place("bitwise_or", self, other)

    def __xor__(self, other):
        return _binary("bitwise_xor", self, other)

    def __rxor__(self, other):
        return _binary("bitwise_xor", other, self)

    def __ixor__(self, other):
        return _in_place("bitwise_xor", self, other)

    def __lshift__(self, other):
        return _binary("left_shift", self, other)

    def __rlshift__(self, other):
        return _binary("left_shift", other, self)

    def __ilshift__(self, other):
        return _in_place("left_shift", self, other)

    def __rshift__(self, other):
        return _binary("right_shift", self, other)

    def __rrshift__(self, other):
        return _binary("right_shift", other, self)

    def __irshift__(self, other):
        return _in_place("right_shift", self, other)

    def __matmul__(self, other):
        return _matmul(self, other)

    def __rmatmul__(self, other):
        return _matmul(other, self)

    def __lt__(self, other):
        return _compare("less", self, other)

    def __le__(self, other):
        return _compare("less_equal", self, other)

    def __gt__(self, other):
        return _compare("greater", self, other)

    def __ge__(self, other):
        return _compare("greater_equal", self, other)

    def __eq__(self, other):
        return _compare("equal", self, other)

    def __ne__(self, other):
        return _compare("not_equal", self, other)

    # A matrix is found in a dict by identity: it can change.
    __hash__ = object.__hash__

    def __neg__(self):
        return _unary("negative", self)

    def __pos__(self):
        return _unary("positive", self)

    def __abs__(self):
        return _unary("absolute", self)

    def __invert__(self):
        return _unary("invert", self)


def by_ufunc(name: str):
    """The operator that one of numpy's functions is, for numpy's own values on the left side."""
    if name in _ARITHMETIC or name == "true_divide":
        ufunc = "divide" if name == "true_divide" else name
        return lambda left, right: _binary(ufunc, left, right)
    if name in _COMPARISONS:
        return lambda left, right: _compare(name, left, right)
    return _matmul if name == "matmul" else None


def operand(value):
    """An operand as an array and the type that was declared for it; ``None`` if it is none of a matrix's operands."""
    if isinstance(value, _matrix.Matrix):
        return value.entries, value.dt
    entries = plain_array(value)
    if entries is not None:
        return entries, None
    import numpy

    if isinstance(value, (int, float, numpy.number, numpy.bool_)):
        return numpy.asarray(value), None
    if isinstance(value, (list, tuple)) and not _matrix.holds_expression(value):
        return _matrix.array_of(value), None
    if isinstance(value, numpy.ndarray) and value.dtype.kind in "biuf":
        return value, None
    return None


def same_shape(arrays, sign: str) -> None:
    """Refuses operands of different shapes; a number goes with any."""
    shapes = list(dict.fromkeys(array.shape for array in arrays if array.ndim))
    if len(shapes) > 1:
        raise OctantsTypeError(f"unsupported operand shapes for '{sign}': {' and '.join(map(str, shapes))}")


def declared_type(numpy_dtype, *declared) -> DataType | None:
    """The data type of a result, if that of some operand was declared."""
    for dt in declared:
        if dt is not None:
            return of_numpy(numpy_dtype)
    return None


def are_alike(left, right) -> bool:
    """Whether two values are matrices of one shape and type."""
    if type(left) not in _matrix.TYPES or type(right) not in _matrix.TYPES:
        return False
    a, b = left.entries, right.entries
    return a.dtype is b.dtype and left.dt is right.dt and a.shape == b.shape


def _quick_binary(ufunc: str, left, right):
    """Arithmetic of operands of one type, whose result is of that type; ``None`` for all others."""
    if type(left) in _matrix.TYPES:
        array, dt = left.entries, left.dt
        a, b, number = array, right, right
    elif type(right) in _matrix.TYPES:
        array, dt = right.entries, right.dt
        a, b, number = left, array, left
    else:
        return None
    kind = array.dtype.char
    if type(number) in _matrix.TYPES:
        b = number.entries
        is_same = are_alike(left, right) and kind in ("dl" if dt is None else "fdil")
    else:
        is_same = _is_of_same_type(number, kind, dt)
    if not is_same or not (_is_quick_of_integers(ufunc, number, b) if kind in "il" else ufunc in _OF_REALS):
        return None
    return _matrix.matrix_over(quiet.quietly(numpy_function(ufunc), a, b), dt)


def _is_of_same_type(number, kind: str, dt) -> bool:
    """Whether a Python number beside entries of a kind, declared as ``dt``, is of their type."""
    if type(number) is not float and not (type(number) is int and -(2**31) < number < 2**31):
        return False
    if dt is None:
        # Plain numbers beside each other.
        return kind == "d" or (kind == "l" and type(number) is int)
    return kind in "fd" and dt is default_real()


_UFUNCS: dict = {}


def numpy_function(name: str):
    """A function of numpy's by its name. Importing it each time takes longer than looking here."""
    found = _UFUNCS.get(name)
    if found is None:
        import numpy

        found = _UFUNCS[name] = getattr(numpy, name)
    return found


def _is_quick_of_integers(ufunc: str, number, divisor) -> bool:
    """Quotients are reals, powers and shifts have rules of their own, and nothing is divided by zero."""
    if ufunc in ("floor_divide", "remainder"):
        return number is divisor and number != 0
    return ufunc not in ("divide", "power", "left_shift", "right_shift")


def _binary(ufunc: str, left, right):
    quick = _quick_binary(ufunc, left, right)
    if quick is not None:
        return quick
    sign, rule = _ARITHMETIC[ufunc]
    first, second = operand(left), operand(right)
    if first is None or second is None:
        return NotImplemented
    (a, a_type), (b, b_type) = first, second
    if a.shape != b.shape:
        same_shape((a, b), sign)
    if sign in _OF_INTEGERS and "f" in (a.dtype.kind, b.dtype.kind):
        raise OctantsTypeError(f"unsupported operand types for '{sign}': {a.dtype} and {b.dtype}; it takes integers")
    common = _common_type(rule, a.dtype, a_type is not None, b.dtype, b_type is not None)
    integral = common.kind in "iub"
    if sign in ("//", "%") and integral and not b.all():
        raise ZeroDivisionError(f"integer division by zero in '{sign}'")
    # Powers of integers wrap, whatever the type that they are computed in, and the exponent is no value of that type.
    computed = numpy_function("dtype")("int64") if sign == "**" and integral else common
    result = quiet.quietly(_converted, numpy_function(ufunc), a, b, computed, common)
    return _matrix.matrix_over(result, declared_type(common, a_type, b_type))


def _converted(ufunc, a, b, computed, common):
    """What a function of numpy's gives for operands of the type that it computes in."""
    result = ufunc(a if a.dtype is computed else a.astype(computed), b if b.dtype is computed else b.astype(computed))
    return result if result.dtype is common else result.astype(common)


_COMMON_TYPES: dict = {}


def _common_type(rule, a, is_a_declared, b, is_b_declared):
    """What a rule gives for two operands. Types, session's defaults and rules are few: it is looked up."""
    key = (rule, a, is_a_declared, b, is_b_declared, default_real(), default_integer())
    found = _COMMON_TYPES.get(key)
    if found is None:
        found = _COMMON_TYPES[key] = rule([(a, is_a_declared), (b, is_b_declared)])
    return found


def _in_place(ufunc: str, left, right):
    """As a variable in a kernel, the left side keeps its type; other names for the old value keep the old value."""
    result = _binary(ufunc, left, right)
    if result is NotImplemented or left.dt is None:
        return result
    return _matrix.matrix_over(_matrix.cast_array(result.entries, left.entries.dtype), left.dt)


def _compare(ufunc: str, left, right):
    sign = _COMPARISONS[ufunc]
    if type(left) in _matrix.TYPES:
        array = left.entries
        if are_alike(left, right):
            return _matrix.compared(numpy_function(ufunc)(array, right.entries), sign)
        if _is_of_same_type(right, array.dtype.char, left.dt):
            return _matrix.compared(numpy_function(ufunc)(array, right), sign)
    first, second = operand(left), operand(right)
    if first is None or second is None:
        return NotImplemented
    (a, a_type), (b, b_type) = first, second
    if a.shape != b.shape:
        same_shape((a, b), sign)
    common = _common_type(promoted, a.dtype, a_type is not None, b.dtype, b_type is not None)
    holds = numpy_function(ufunc)(a.astype(common, copy=False), b.astype(common, copy=False))
    return _matrix.compared(holds, sign)


def _matmul(left, right):
    import numpy

    first, second = operand(left), operand(right)
    if first is None or second is None:
        return NotImplemented
    (a, a_type), (b, b_type) = first, second
    if not a.ndim or not b.ndim:
        raise OctantsTypeError("unsupported operand types for '@': it multiplies matrices and vectors, not numbers")
    if a.shape[-1] != b.shape[0]:
        raise OctantsTypeError(f"unsupported operand shapes for '@': {a.shape} and {b.shape}")
    common = _common_type(promoted, a.dtype, a_type is not None, b.dtype, b_type is not None)
    result = numpy.asarray(quiet.quietly(numpy.matmul, a.astype(common, copy=False), b.astype(common, copy=False)))
    return _matrix.matrix_over(result, declared_type(common, a_type, b_type))


def _unary(ufunc: str, value):
    array = value.entries
    if ufunc == "invert" and array.dtype.kind == "f":
        raise OctantsTypeError("'~' takes integers only")
    if array.dtype.kind == "b" and ufunc != "invert":
        array = array.astype(numpy_type(int))
    return _matrix.matrix_over(numpy_function(ufunc)(array), declared_type(array.dtype, value.dt))
