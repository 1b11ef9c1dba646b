"""Types of values on the host: which numpy type stands for a data type, and what an operation on two of them gives.

The rules are those of kernels: reals beat integers, then the wider type wins, then the unsigned one. A Python number, and a
value that numpy made out of Python numbers (``int64``, ``float64``), is *weak*: among themselves weak values stay as they are, beside
a typed value they count as the session's default type.
"""

from __future__ import annotations

from .._octants import DataType, dtypes


def default_real() -> DataType:
    """What ``float`` means in the current session."""
    return getattr((_session or _imported_session()).cfg, "default_fp", _F32)


def default_integer() -> DataType:
    """What ``int`` means in the current session."""
    return getattr((_session or _imported_session()).cfg, "default_ip", _I32)


def default_unsigned() -> DataType:
    """The unsigned integers that are as wide as the session's ``int``."""
    return getattr((_session or _imported_session()).cfg, "default_up", _U32)


_F32, _I32, _U32 = dtypes["f32"], dtypes["i32"], dtypes["u32"]
_session = None


def _imported_session():
    """The module of the session, which is made of this one. Importing it each time takes 0.4 µs."""
    global _session
    from .. import _session as module

    _session = module
    return module


def data_type(dtype) -> DataType:
    """The data type that an object means, Python's ``int`` and ``float`` being the session's defaults."""
    if dtype is float:
        return default_real()
    if dtype is int:
        return default_integer()
    return DataType.of(dtype)


def numpy_type(dtype):
    """The numpy type of what an object means as a data type."""
    import numpy

    return numpy.dtype(data_type(dtype).numpy_name)


_BY_NUMPY_NAME = {dtype.numpy_name: dtype for dtype in dtypes.values()}
# numpy makes up the name of a type for 1 µs.
_BY_NUMPY_TYPE: dict = {}


def of_numpy(numpy_dtype) -> DataType:
    """The data type of a numpy type."""
    found = _BY_NUMPY_TYPE.get(numpy_dtype)
    if found is None:
        found = _BY_NUMPY_TYPE[numpy_dtype] = _BY_NUMPY_NAME[numpy_dtype.name]
    return found


def is_weak(numpy_dtype) -> bool:
    """Whether numpy gives this type to plain Python numbers."""
    return numpy_dtype.kind == "b" or numpy_dtype.char in "lqd"


def _rank(numpy_dtype) -> tuple[bool, int, bool]:
    width = 1 if numpy_dtype.kind == "b" else numpy_dtype.itemsize * 8
    return numpy_dtype.kind == "f", width, numpy_dtype.kind in "ub"


# The rules take operands as pairs ``(numpy type, whether it was declared)``.


def promoted(operands):
    """The common type."""
    if all(dtype == operands[0][0] for dtype, _ in operands):
        return operands[0][0]
    import numpy

    if _all_weak(operands):
        return numpy.result_type(*(dtype for dtype, _ in operands))
    return max((_default_if_weak(dtype, declared) for dtype, declared in operands), key=_rank)


def divided(operands):
    """The common type for true division: integers count as the default real."""
    if all(dtype.kind == "f" for dtype, _ in operands):
        return promoted(operands)
    import numpy

    if _all_weak(operands):
        return numpy.dtype(numpy.float64)
    real = numpy_type(float)
    return max((dtype if dtype.kind == "f" else real for dtype in (_default_if_weak(*o) for o in operands)), key=_rank)


def left_type(operands):
    """The left operand's type, for shifts."""
    dtype, declared = operands[0]
    return dtype if _all_weak(operands) else _default_if_weak(dtype, declared)


def powered(operands):
    """The left operand's type if the exponent is an integer, else the common type."""
    return promoted(operands) if operands[1][0].kind == "f" else left_type(operands)


def _all_weak(operands) -> bool:
    return all(is_weak(dtype) and not declared for dtype, declared in operands)


def _default_if_weak(dtype, declared: bool):
    """A weak type as the default type that it counts as beside a typed value."""
    if declared or not is_weak(dtype) or dtype.kind == "b":
        return dtype
    return numpy_type(float if dtype.kind == "f" else int)
