# Written by scripts/write_stubs.py from the package and from scripts/stub_templates.
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

from .. import Matrix, Vector
from .. import Template as Template
from .. import f16 as f16
from .. import f32 as f32
from .. import f64 as f64
from .. import float16 as float16
from .. import float32 as float32
from .. import float64 as float64
from .. import i8 as i8
from .. import i16 as i16
from .. import i32 as i32
from .. import i64 as i64
from .. import int8 as int8
from .. import int16 as int16
from .. import int32 as int32
from .. import int64 as int64
from .. import sparse_matrix_builder as sparse_matrix_builder
from .. import template as template
from .. import u1 as u1
from .. import u8 as u8
from .. import u16 as u16
from .. import u32 as u32
from .. import u64 as u64
from .. import uint1 as uint1
from .. import uint8 as uint8
from .. import uint16 as uint16
from .. import uint32 as uint32
from .. import uint64 as uint64
from .._matrix.struct import StructType as StructType
from .._matrix.types import MatrixType as MatrixType
from .._matrix.types import VectorType as VectorType
from .._octants import DataType as DataType
from .._tensor import Tensor as Tensor
from . import annotations as annotations
from . import buffer_view_type as buffer_view_type
from . import compound_types as compound_types
from . import enums as enums
from . import ndarray_type as ndarray_type
from . import primitive_types as primitive_types
from . import quant as quant
from . import utils as utils

class NDArray(Protocol):
    """Annotation of an array parameter: ``x: oc.types.ndarray(dtype=oc.f32, ndim=2)``.

    What is left out is taken from the argument. ``boundary="clamp"`` clamps each index into the shape."""

    def __class_getitem__(cls, item: Any) -> Any: ...
    @property
    def shape(self) -> Any: ...
    def __getitem__(self, index: Any, /) -> Any: ...
    def __setitem__(self, index: Any, value: Any, /) -> None: ...

def ndarray(
    dtype: Any = None,
    ndim: int | None = None,
    element_dim: int | None = None,
    element_shape: Sequence[int] | None = None,
    field_dim: None = None,
    needs_grad: bool | None = None,
    boundary: str = "unsafe",
) -> type[NDArray]:
    """Annotation of an array parameter: ``x: oc.types.ndarray(dtype=oc.f32, ndim=2)``.

    What is left out is taken from the argument. ``boundary="clamp"`` clamps each index into the shape."""

class BufferViewType:
    """Annotation of a parameter that is a part of an array: ``BufferView[oc.f32]`` or ``BufferView[oc.f32, "clamp"]``.

    ``boundary="clamp"`` clamps each index into the view, and into the parts that are made of it."""

    def __init__(self, dtype: Any = None, boundary: str = "unsafe") -> None: ...

NdarrayType: TypeAlias = NDArray
Ref: Any
ref: Any

def vector(n: int, dtype: Any = None, unpacked: bool = False) -> type[Vector]:
    """The type of vectors with ``n`` entries of ``dtype``; without ``dtype``, an annotation for funcs.

    ``unpacked=True`` makes a member of an ``@oc.dataclass`` that is kept as ``n`` scalar members."""

def matrix(n: int, m: int, dtype: Any = None) -> type[Matrix]:
    """The type of matrices with ``n`` rows and ``m`` columns of ``dtype``; without ``dtype``, an annotation for funcs."""

def struct(**members: Any) -> StructType:
    """The type of structs with the given members: ``oc.types.struct(pos=vec3, mass=oc.f32)``.

    The key ``__struct_methods`` gives functions by name that values have as methods."""

SparseMatrixBuilderType: TypeAlias = Any

def is_integral(dtype: Any) -> bool:
    """Whether a type is an integer (``u1`` counts)."""

def is_real(dtype: Any) -> bool:
    """Whether a type is a floating-point type."""

def is_signed(dtype: Any) -> bool:
    """Whether a type has negative values."""

def is_tensor(dtype: Any) -> bool:
    """Whether a type is one of vectors or matrices."""

def numpy_type(dtype: Any) -> Any:
    """The numpy type of what an object means as a data type."""

def to_numpy_type(dtype: Any) -> Any:
    """The numpy dtype of an Octants dtype (or of Python's ``int``, ``float``, ``bool``)."""
