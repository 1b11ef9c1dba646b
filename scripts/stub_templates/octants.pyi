from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, TypeAlias, TypeVar, overload

from typing_extensions import Self, dataclass_transform

from . import (
    ad as ad,
)
from . import (
    exceptions as exceptions,
)
from . import (
    experimental as experimental,
)
from . import (
    math as math,
)
from . import (
    profiler as profiler,
)
from . import (
    types as types,
)
from . import algorithms as algorithms
from . import graph as graph
from . import interop as interop
from . import lang as lang
from . import linalg as linalg
from . import simt as simt
from . import sparse as sparse
from . import tools as tools
from ._fields.builder import FieldsBuilder as FieldsBuilder
from ._fields.field import Field as Field
from ._fields.making import Layout as Layout
from ._fields.matrix import MatrixField as MatrixField
from ._fields.node import SNode as SNode
from ._fields.scalar import ScalarField as ScalarField
from ._fields.struct import StructField as StructField
from ._matrix.types import MatrixType as _MatrixType
from ._arrays import Ndarray as Ndarray
from ._octants import DataType as _DataType
from ._session import Arch as _Arch
from ._matrix.struct import StructType as _StructType
from .types.enums import DeviceCapability as DeviceCapability
from .types.enums import Format as Format

_P = ParamSpec("_P")
_Q = ParamSpec("_Q")
_R = TypeVar("_R", covariant=True)
_T = TypeVar("_T")

# What stands for the type of an element: a number type, a type of vectors or matrices, a struct type.
_Scalar: TypeAlias = type[float] | type[int] | type[bool] | _DataType
_Compound: TypeAlias = type[Matrix] | _MatrixType
_Shape: TypeAlias = int | Sequence[int]

# An editor sees number types as Python's numbers, which arguments and values of kernels are on the host.
f16: TypeAlias = float
f32: TypeAlias = float
f64: TypeAlias = float
float16: TypeAlias = float
float32: TypeAlias = float
float64: TypeAlias = float
i8: TypeAlias = int
i16: TypeAlias = int
i32: TypeAlias = int
i64: TypeAlias = int
int8: TypeAlias = int
int16: TypeAlias = int
int32: TypeAlias = int
int64: TypeAlias = int
u1: TypeAlias = bool
u8: TypeAlias = int
u16: TypeAlias = int
u32: TypeAlias = int
u64: TypeAlias = int
uint1: TypeAlias = bool
uint8: TypeAlias = int
uint16: TypeAlias = int
uint32: TypeAlias = int
uint64: TypeAlias = int

class _BoundKernel(Generic[_P, _R]):
    @overload
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @overload
    def __call__(self, *args: Any, qd_stream: Any, **kwargs: Any) -> _R: ...
    def grad(self, *args: Any, **kwargs: Any) -> None: ...
    def grad_plan(self, *args: Any, **kwargs: Any) -> dict[str, Any]: ...

class _Kernel(_BoundKernel[_P, _R]):
    @overload
    def __get__(self, instance: None, owner: Any) -> Self: ...
    @overload
    def __get__(self: _Kernel[Concatenate[Any, _Q], _R], instance: Any, owner: Any) -> _BoundKernel[_Q, _R]: ...
    def compile_statistics(self) -> list[dict[str, float]]: ...
    def resources(self) -> list[dict[str, Any]]: ...
    def dump(self, stage: str, *, capability: int | None = None, grad: bool = False) -> str | None: ...

@overload
def kernel(fn: Callable[_P, _R]) -> _Kernel[_P, _R]: ...
@overload
def kernel(
    *, pure: bool | None = None, fastcache: bool = False, graph: bool = False, checkpoints: bool = False
) -> Callable[[Callable[_P, _R]], _Kernel[_P, _R]]: ...
@overload
def func(fn: _T) -> _T: ...
@overload
def func(*, is_real_function: bool = False, requires_top_level: bool = False) -> Callable[[_T], _T]: ...
def real_func(fn: _T) -> _T: ...
def pyfunc(fn: _T) -> _T: ...
def pure(fn: _T) -> _T: ...
@overload
def data_oriented(cls: _T) -> _T: ...
@overload
def data_oriented(*, stable_members: bool = False, template_primitives: bool = True) -> Callable[[_T], _T]: ...
@dataclass_transform()
def dataclass(cls: type[_T]) -> type[_T]: ...

Template: TypeAlias = Any

def template(*args: Any, **kwargs: Any) -> Any: ...
def sparse_matrix_builder() -> Any: ...

ref: Any

def init(
    arch: _Arch | Sequence[_Arch] | None = None,
    default_fp: _Scalar | None = None,
    default_ip: _Scalar | None = None,
    _test_mode: bool = False,
    enable_fallback: bool = True,
    require_version: str | None = None,
    **options: Any,
) -> None: ...
def reset() -> None: ...
def sync(*, all: bool = False) -> None: ...
@overload
def field(
    dtype: _Scalar,
    shape: _Shape | None = None,
    order: str | None = None,
    name: str = "",
    offset: _Shape | None = None,
    needs_grad: bool = False,
    needs_dual: bool = False,
    layout: Layout = ...,
) -> ScalarField: ...
@overload
def field(
    dtype: _Compound,
    shape: _Shape | None = None,
    order: str | None = None,
    name: str = "",
    offset: _Shape | None = None,
    needs_grad: bool = False,
    needs_dual: bool = False,
    layout: Layout = ...,
) -> MatrixField: ...
@overload
def field(
    dtype: _StructType,
    shape: _Shape | None = None,
    order: str | None = None,
    name: str = "",
    offset: _Shape | None = None,
    needs_grad: bool = False,
    needs_dual: bool = False,
    layout: Layout = ...,
) -> StructField: ...
@overload
def field(
    dtype: type[object],
    shape: _Shape | None = None,
    order: str | None = None,
    name: str = "",
    offset: _Shape | None = None,
    needs_grad: bool = False,
    needs_dual: bool = False,
    layout: Layout = ...,
) -> StructField: ...
def ndarray(
    dtype: _Scalar | _Compound,
    shape: _Shape,
    needs_grad: bool = False,
    *,
    needs_dual: bool = False,
    layout: Sequence[int] | None = None,
) -> Ndarray: ...
def static(x: _T, *others: Any) -> _T: ...
def grouped(x: Any) -> Iterable[Any]: ...
def stream_parallel() -> Any: ...

class ndrange:
    def __init__(self, *bounds: Any, axes: Sequence[int] | None = None) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...

__version__: tuple[int, ...]
__version_str__: str
cfg: Any
