"""Types: scalars, and annotations of kernel parameters."""

from __future__ import annotations

from .. import _primitive_types
from .._matrix.promotion import numpy_type
from .._matrix.struct import StructType, struct
from .._matrix.types import MatrixType, VectorType, matrix, vector
from .._octants import DataType
from .._primitive_types import *  # noqa: F403
from .._tensor import Tensor
from . import primitive_types, quant


def to_numpy_type(dtype):
    """The numpy dtype of an Octants dtype (or of Python's ``int``, ``float``, ``bool``)."""
    return numpy_type(dtype)


def is_integral(dtype) -> bool:
    """Whether a type is an integer (``u1`` counts)."""
    return DataType.of(dtype).is_integral


def is_real(dtype) -> bool:
    """Whether a type is a floating-point type."""
    return not DataType.of(dtype).is_integral


def is_tensor(dtype) -> bool:
    """Whether a type is one of vectors or matrices."""
    return isinstance(dtype, MatrixType)


def is_signed(dtype) -> bool:
    """Whether a type has negative values."""
    return DataType.of(dtype).is_signed


class NdarrayType:
    """Annotation of an array parameter: ``x: oc.types.ndarray(dtype=oc.f32, ndim=2)``.

    What is left out is taken from the argument. ``boundary="clamp"`` clamps each index into the shape.
    """

    __slots__ = ("boundary", "dtype", "element", "ndim", "needs_grad", "optional")

    def __init__(
        self,
        dtype=None,
        ndim=None,
        element_dim=None,
        element_shape=None,
        field_dim=None,
        needs_grad=None,
        boundary="unsafe",
    ):
        if field_dim is not None:
            raise ValueError("oc.types.ndarray has no field_dim; the number of axes is ndim")
        if boundary not in ("unsafe", "clamp"):
            raise ValueError(f'boundary is "unsafe" or "clamp", not {boundary!r}')
        if ndim is not None and (not isinstance(ndim, int) or isinstance(ndim, bool) or not 0 <= ndim <= 12):
            raise ValueError(f"ndim is an integer from 0 to 12, not {ndim!r}")
        self.dtype = _element_type(dtype, element_dim, element_shape)
        #: What elements must be where ``dtype`` does not say it: a number of axes, or their extents.
        self.element = None if isinstance(self.dtype, MatrixType) else _element_form(element_dim, element_shape)
        self.ndim = ndim
        self.needs_grad = needs_grad
        self.boundary = boundary
        #: Whether ``None`` may be passed in its place.
        self.optional = False

    def __or__(self, other):
        if other is not None:
            return NotImplemented
        either = NdarrayType.__new__(NdarrayType)
        for name in self.__slots__:
            setattr(either, name, getattr(self, name))
        either.optional = True
        return either

    __ror__ = __or__

    def __repr__(self):
        names = [name for name in self.__slots__ if name != "optional"]
        parts = [f"{name}={value!r}" for name in names if (value := getattr(self, name)) is not None]
        return f"oc.types.ndarray({', '.join(parts)})" + " | None" * self.optional

    @classmethod
    def __class_getitem__(cls, item):
        items = item if isinstance(item, tuple) else (item,)
        if len(items) > 2:
            raise TypeError(f"NDArray[dtype, ndim] takes at most two arguments, not {len(items)}")
        return cls(*items)


def _element_type(dtype, element_dim, element_shape):
    """The type of the elements, or ``None`` for whatever arrives."""
    if element_shape is not None:
        element_shape = tuple(element_shape)
        if element_dim is not None and element_dim != len(element_shape):
            raise ValueError(
                f"element_shape={element_shape} has {len(element_shape)} axes, but element_dim={element_dim}"
            )
        if len(element_shape) > 2:
            raise ValueError(
                f"elements are scalars, vectors or matrices; element_shape={element_shape} is none of these"
            )
    if element_dim is not None and element_dim not in (0, 1, 2):
        raise ValueError(f"element_dim is 0, 1 or 2, not {element_dim!r}")
    if dtype is None:
        return None
    if isinstance(dtype, MatrixType):
        if dtype.unpacked or (element_shape is not None and element_shape != dtype.get_shape()):
            raise ValueError(f"{dtype!r} does not fit element_shape={element_shape}")
        dtype.require_dtype("elements of an array")
        return dtype
    scalar = DataType.of(dtype)
    if not element_shape:
        return scalar
    return vector(*element_shape, scalar) if len(element_shape) == 1 else matrix(*element_shape, scalar)


def _element_form(element_dim, element_shape):
    return element_dim if element_shape is None else tuple(element_shape)


ndarray = NdarrayType
NDArray = NdarrayType


class BufferViewType:
    """Annotation of a parameter that is a part of an array: ``BufferView[oc.f32]`` or ``BufferView[oc.f32, "clamp"]``.

    ``boundary="clamp"`` clamps each index into the view, and into the parts that are made of it.
    """

    __slots__ = ("boundary", "dtype", "element", "ndim", "needs_grad")

    def __init__(self, dtype=None, boundary="unsafe"):
        if boundary not in ("unsafe", "clamp"):
            raise ValueError(f'boundary is "unsafe" or "clamp", not {boundary!r}')
        # Python's own types mean the session's defaults.
        self.dtype = dtype if dtype in (int, float) else _element_type(dtype, None, None)
        self.boundary = boundary
        self.element = None
        self.ndim = None
        self.needs_grad = None

    def __repr__(self):
        clamps = ', "clamp"' if self.boundary == "clamp" else ""
        return f"oc.BufferView[{self.dtype!r}{clamps}]"


class Template:
    """Annotation of a parameter whose value is known while compiling."""

    def __init__(self, *_args, **_kwargs):
        pass

    def __or__(self, other):
        # It may be None in any case.
        return self if other is None else NotImplemented

    __ror__ = __or__

    def __repr__(self) -> str:
        return "oc.template()"


template = Template


class SparseMatrixBuilderType(Template):
    """Annotation of a parameter that is an ``oc.linalg.SparseMatrixBuilder``: ``A: oc.types.sparse_matrix_builder()``."""

    def __repr__(self) -> str:
        return "oc.types.sparse_matrix_builder()"


sparse_matrix_builder = SparseMatrixBuilderType


class Ref:
    """Annotation of a real function's parameter that is passed by reference: ``x: oc.ref(oc.f32)``."""

    def __init__(self, dtype):
        #: A data type, a vector, matrix or struct type.
        self.dtype = dtype if isinstance(dtype, (MatrixType, StructType)) else DataType.of(dtype)

    def __repr__(self):
        return f"oc.ref({self.dtype!r})"


ref = Ref

#: Modules that are imported when they are asked for.
_MODULES = ("annotations", "buffer_view_type", "compound_types", "enums", "ndarray_type", "utils")


def __getattr__(name: str):
    from .._on_demand import module

    return module(__name__, name, _MODULES, f"types.{name}")


__all__ = [
    "BufferViewType", "MatrixType", "NDArray", "StructType", "Template", "Tensor", "VectorType", "is_integral", "is_real", "is_signed",
    "is_tensor", "matrix", "ndarray", "primitive_types", "quant", "ref", "sparse_matrix_builder", "struct", "template", "vector",
]  # fmt: skip
__all__ += _primitive_types.__all__
