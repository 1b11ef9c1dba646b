# Written by scripts/write_stubs.py from the package and from scripts/stub_templates.
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, TypeAlias, TypeVar, overload

from typing_extensions import Self, dataclass_transform

from . import ad as ad
from . import algorithms as algorithms
from . import exceptions as exceptions
from . import experimental as experimental
from . import graph as graph
from . import interop as interop
from . import lang as lang
from . import linalg as linalg
from . import math as math
from . import profiler as profiler
from . import simt as simt
from . import sparse as sparse
from . import tools as tools
from . import types as types
from ._arrays import MatrixNdarray as MatrixNdarray
from ._arrays import Ndarray as Ndarray
from ._arrays import ScalarNdarray as ScalarNdarray
from ._arrays import VectorNdarray as VectorNdarray
from ._fields.axes import Axes as _Axes
from ._fields.builder import FieldsBuilder as FieldsBuilder
from ._fields.builder import Root as _Root
from ._fields.field import Field as Field
from ._fields.making import Layout as Layout
from ._fields.matrix import MatrixField as MatrixField
from ._fields.node import SNode as SNode
from ._fields.quantised import BitpackedFields as BitpackedFields
from ._fields.scalar import ScalarField as ScalarField
from ._fields.struct import StructField as StructField
from ._language import atomic_add as atomic_add
from ._language import atomic_and as atomic_and
from ._language import atomic_exchange as atomic_exchange
from ._language import atomic_max as atomic_max
from ._language import atomic_min as atomic_min
from ._language import atomic_mul as atomic_mul
from ._language import atomic_or as atomic_or
from ._language import atomic_sub as atomic_sub
from ._language import atomic_xor as atomic_xor
from ._language.fields import activate as activate
from ._language.fields import append as append
from ._language.fields import assume_in_range as assume_in_range
from ._language.fields import block_local as block_local
from ._language.fields import cache_read_only as cache_read_only
from ._language.fields import deactivate as deactivate
from ._language.fields import get_addr as get_addr
from ._language.fields import is_active as is_active
from ._language.fields import length as length
from ._language.fields import loop_unique as loop_unique
from ._language.fields import no_activate as no_activate
from ._language.fields import rescale_index as rescale_index
from ._language.fields import stop_grad as stop_grad
from ._matrix.struct import Struct as Struct
from ._matrix.struct import StructType as _StructType
from ._matrix.types import MatrixType as _MatrixType
from ._octants import BufferView as BufferView
from ._octants import DataType as _DataType
from ._octants import explain as explain
from ._session import Arch as _Arch
from ._session.device import DeviceProperties as DeviceProperties
from ._session.extensions import _Extensions as __Extensions
from ._session.streams import Event as Event
from ._session.streams import Stream as Stream
from ._tensor import Backend as Backend
from ._tensor import MatrixTensor as MatrixTensor
from ._tensor import Tensor as Tensor
from ._tensor import VectorTensor as VectorTensor
from .exceptions import OctantsAssertionError as OctantsAssertionError
from .exceptions import OctantsCompilationError as OctantsCompilationError
from .exceptions import OctantsDeviceUnavailable as OctantsDeviceUnavailable
from .exceptions import OctantsNameError as OctantsNameError
from .exceptions import OctantsRuntimeError as OctantsRuntimeError
from .exceptions import OctantsRuntimeTypeError as OctantsRuntimeTypeError
from .exceptions import OctantsSyntaxError as OctantsSyntaxError
from .exceptions import OctantsTypeError as OctantsTypeError
from .types.enums import DeviceCapability as DeviceCapability
from .types.enums import Format as Format

_P = ParamSpec("_P")
_Q = ParamSpec("_Q")
_R = TypeVar("_R", covariant=True)
_T = TypeVar("_T")
_Scalar: TypeAlias = type[float] | type[int] | type[bool] | _DataType
_Compound: TypeAlias = type[Matrix] | _MatrixType
_Shape: TypeAlias = int | Sequence[int]
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
def kernel(fn: Callable[_P, _R]) -> _Kernel[_P, _R]:
    """Compiles a function into a kernel: its outermost ``for`` loops run in parallel on all cores.

    Every parameter is annotated: ``oc.f32``, ``int``, ``oc.types.ndarray(dtype=oc.f32, ndim=1)``. Compiled when first called, once
    for each kind of arguments. Every kernel is kept on disk; ``fastcache=True`` promises that this one depends on its arguments alone,
    which is checked, and changes nothing else. A kernel with ``graph=True`` runs as any
    other, but takes no ``qd_stream`` and has no ``oc.stream_parallel`` blocks."""

@overload
def kernel(
    *, pure: bool | None = None, fastcache: bool = False, graph: bool = False, checkpoints: bool = False
) -> Callable[[Callable[_P, _R]], _Kernel[_P, _R]]:
    """Compiles a function into a kernel: its outermost ``for`` loops run in parallel on all cores.

    Every parameter is annotated: ``oc.f32``, ``int``, ``oc.types.ndarray(dtype=oc.f32, ndim=1)``. Compiled when first called, once
    for each kind of arguments. Every kernel is kept on disk; ``fastcache=True`` promises that this one depends on its arguments alone,
    which is checked, and changes nothing else. A kernel with ``graph=True`` runs as any
    other, but takes no ``qd_stream`` and has no ``oc.stream_parallel`` blocks."""

@overload
def func(fn: _T) -> _T:
    """Marks a function that kernels call: its body is compiled into each caller."""

@overload
def func(*, is_real_function: bool = False, requires_top_level: bool = False) -> Callable[[_T], _T]:
    """Marks a function that kernels call: its body is compiled into each caller."""

def real_func(fn: _T) -> _T:
    """Marks a function that is compiled on its own, once for each kind of arguments, and called by kernels.

    It may call itself and return from anywhere. Every parameter is annotated; ``oc.ref(T)`` passes a variable by reference."""

def pyfunc(fn: _T) -> _T:
    """Marks a function that may be called from ordinary Python and from kernels.

    Its body must be written in the kernel language: what it does is what Python does with it."""

def pure(fn: _T) -> _T:
    """Deprecated: every kernel is cached."""

@overload
def data_oriented(cls: _T) -> _T:
    """Lets a class have kernels and funcs as methods.

    Arrays that the object refers to are arguments of the kernel, read from the object at each call. Numbers are constants of the
    compiled code, and the kernel compiles again when one that it uses has changed; with ``template_primitives=False`` they are
    arguments, too. ``stable_members=True``, by which a program says that members are never assigned again, is accepted and changes
    nothing: what a kernel uses is compared at each call as it is."""

@overload
def data_oriented(*, stable_members: bool = False, template_primitives: bool = True) -> Callable[[_T], _T]:
    """Lets a class have kernels and funcs as methods.

    Arrays that the object refers to are arguments of the kernel, read from the object at each call. Numbers are constants of the
    compiled code, and the kernel compiles again when one that it uses has changed; with ``template_primitives=False`` they are
    arguments, too. ``stable_members=True``, by which a program says that members are never assigned again, is accepted and changes
    nothing: what a kernel uses is compared at each call as it is."""

@dataclass_transform()
def dataclass(cls: type[_T]) -> type[_T]:
    """Makes a struct type out of a class: its annotations are the members, its functions the methods of values."""

Template: TypeAlias = Any

def template(*args: Any, **kwargs: Any) -> Any:
    """Annotation of a parameter whose value is known while compiling."""

def sparse_matrix_builder() -> Any:
    """Annotation of a parameter that is an ``oc.linalg.SparseMatrixBuilder``: ``A: oc.types.sparse_matrix_builder()``."""

ref: Any

def init(
    arch: _Arch | Sequence[_Arch] | None = None,
    default_fp: _Scalar | None = None,
    default_ip: _Scalar | None = None,
    _test_mode: bool = False,
    enable_fallback: bool = True,
    require_version: str | None = None,
    **options: Any,
) -> None:
    """Starts a session: picks a device and sets options. A session that was current ends.

    ``arch`` is a device or a list of devices tried in order; without one, the environment variable ``OC_ARCH`` names it. Other options are
    keywords; a keyword beats the environment variable ``OC_<NAME>``."""

def reset() -> None:
    """Ends the session. Arrays made in it refuse from now on; kernels compile again when they are called."""

def sync(*, all: bool = False) -> None:
    """Waits until everything that was launched in the default stream is done; with ``all=True``, in every stream.

    Fields under ``oc.root`` get their memory, if they have none yet."""

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
) -> ScalarField:
    """A field: ``oc.field(oc.f32, shape=(4, 8))``. Without a shape it is placed later: ``oc.root.dense(oc.i, 8).place(x)``.

    ``dtype`` may be a type of vectors, matrices or structs. ``order="ji"`` makes ``i`` the axis that varies fastest in memory;
    ``offset`` is the index of the first element; ``needs_grad`` and ``needs_dual`` place ``x.grad`` and ``x.dual`` too."""

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
) -> MatrixField:
    """A field: ``oc.field(oc.f32, shape=(4, 8))``. Without a shape it is placed later: ``oc.root.dense(oc.i, 8).place(x)``.

    ``dtype`` may be a type of vectors, matrices or structs. ``order="ji"`` makes ``i`` the axis that varies fastest in memory;
    ``offset`` is the index of the first element; ``needs_grad`` and ``needs_dual`` place ``x.grad`` and ``x.dual`` too."""

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
) -> StructField:
    """A field: ``oc.field(oc.f32, shape=(4, 8))``. Without a shape it is placed later: ``oc.root.dense(oc.i, 8).place(x)``.

    ``dtype`` may be a type of vectors, matrices or structs. ``order="ji"`` makes ``i`` the axis that varies fastest in memory;
    ``offset`` is the index of the first element; ``needs_grad`` and ``needs_dual`` place ``x.grad`` and ``x.dual`` too."""

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
) -> StructField:
    """A field: ``oc.field(oc.f32, shape=(4, 8))``. Without a shape it is placed later: ``oc.root.dense(oc.i, 8).place(x)``.

    ``dtype`` may be a type of vectors, matrices or structs. ``order="ji"`` makes ``i`` the axis that varies fastest in memory;
    ``offset`` is the index of the first element; ``needs_grad`` and ``needs_dual`` place ``x.grad`` and ``x.dual`` too."""

def ndarray(
    dtype: _Scalar | _Compound,
    shape: _Shape,
    needs_grad: bool = False,
    *,
    needs_dual: bool = False,
    layout: Sequence[int] | None = None,
) -> Ndarray:
    """A zeroed array: ``oc.ndarray(oc.f32, (480, 640))``. ``needs_grad=True`` makes ``x.grad`` too, ``needs_dual=True`` makes ``x.dual``.

    ``layout=(1, 0)`` lays the axes out in another order in memory, the slowest first; indices and extents stay as they are."""

def static(x: _T, *others: Any) -> _T:
    """Evaluates its argument while compiling: a condition picks a branch, a loop is unrolled."""

def grouped(x: Any) -> Iterable[Any]:
    """Iterates with one vector index in place of one variable for each axis."""

def stream_parallel() -> Any:
    """A block of a kernel that runs at the same time as the blocks beside it: ``with oc.stream_parallel():``.

    One block is one branch, on one stream: loops and statements in it run in order. Consecutive blocks are concurrent. All top-level
    statements of the kernel must be such blocks. Branches must be independent of each other. On the host it does nothing."""

class ndrange:
    """The product of ranges: ``for i, j in oc.ndrange(n, (1, m))``. On the host, an iterator of tuples."""

    def __init__(self, *bounds: Any, axes: Sequence[int] | None = None) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...

__version__: tuple[int, ...]
__version_str__: str
cfg: Any
CRITICAL: str
DEBUG: str
ERROR: str
INFO: str

class Matrix:
    """A small matrix: ``oc.Matrix([[1, 2], [3, 4]], dt=oc.f32)``. A flat list gives a vector.

    ``n`` and ``m`` are the numbers of rows and columns, ``ndim`` is 1 for a vector and 2 for a matrix. ``entries`` is the numpy array that
    holds it; ``dt`` is the data type that was declared, or ``None`` for plain numbers, which
    have the default types when a kernel uses them."""
    def __new__(cls, *entries: Any, dt: Any = None) -> Self: ...
    def __class_getitem__(cls, item: Any) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...
    dt: Any
    n: int
    m: int
    ndim: int
    def __getitem__(self, index: Any) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...
    def __setattr__(self, name: Any, value: Any) -> None: ...
    def __setitem__(self, index: Any, value: Any) -> None: ...
    def all(self) -> Any:
        """Whether no entry is zero."""
    def any(self) -> Any:
        """Whether some entry is not zero."""
    def cast(self, dtype: Any) -> Self:
        """The entries converted by value to ``dtype``."""
    @staticmethod
    def cols(cols: Any) -> Matrix:
        """The matrix with the given vectors as its columns."""
    @property
    def comparison(self) -> Any:
        """The sign of the comparison that gave it, if one did."""
    def constant(self) -> Any:
        """Shape, declared type and entries in row-major order as Python numbers: all that a kernel needs."""
    def cross(self, other: Any) -> Self:
        """The vector product of vectors of 3 entries; of 2 entries, its third component."""
    def determinant(self) -> Any:
        """The determinant, for sizes up to 4."""
    @staticmethod
    def diag(dim: Any, val: Any) -> Matrix:
        """The matrix of size ``dim`` with ``val`` on its diagonal and zeros elsewhere."""
    def dot(self, other: Any) -> Any:
        """The scalar product of two vectors."""
    @staticmethod
    def field(*args: Any, **kwargs: Any) -> MatrixField:
        """A field of matrices: ``oc.Matrix.field(2, 2, oc.f32, shape=8)``. ``dtype`` may be a nested list with a type for each entry."""
    def fill(self, val: Any) -> None:
        """Sets every entry to ``val``."""
    def frobenius_inner(self, other: Any) -> Any:
        """The sum of the products of entries at the same place."""
    def get_shape(self) -> Any:
        """``(n,)`` for a vector, ``(n, m)`` for a matrix."""
    @staticmethod
    def identity(dt: Any, n: Any) -> Matrix:
        """The unit matrix of size ``n``."""
    def inverse(self) -> Self:
        """The inverse, for sizes up to 12: by cofactors up to 4, by elimination with pivots above."""
    def max(self) -> Any:
        """The greatest entry."""
    def min(self) -> Any:
        """The least entry."""
    @staticmethod
    def ndarray(*args: Any, **kwargs: Any) -> Ndarray:
        """A zeroed array of matrices: ``oc.Matrix.ndarray(3, 3, oc.f32, shape=100)``."""
    def norm(self, eps: Any = ...) -> float:
        """The root of the sum of the squares of the entries, plus ``eps`` under the root."""
    def norm_inv(self, eps: Any = ...) -> float:
        """One over ``norm(eps)``."""
    def norm_sqr(self) -> Any:
        """The sum of the squares of the entries."""
    def normalized(self, eps: Any = ...) -> Self:
        """The vector divided by its length plus ``eps``."""
    @staticmethod
    def one(dt: Any, n: Any, m: Any = ...) -> Any:
        """A vector of ``n`` ones, or a matrix of ``n`` × ``m``."""
    def outer_product(self, other: Any) -> Matrix:
        """The matrix of all products of an entry of one vector with an entry of the other."""
    @staticmethod
    def rows(rows: Any) -> Matrix:
        """The matrix with the given vectors as its rows."""
    def sum(self) -> Any:
        """The sum of the entries."""
    @staticmethod
    def tensor(*args: Any, **kwargs: Any) -> Tensor:
        """A zeroed tensor of matrices: ``oc.Matrix.tensor(3, 3, oc.f32, shape=100)``."""
    def to_list(self) -> Any:
        """The entries as Python numbers in a list, of lists if it is a matrix."""
    def to_numpy(self) -> Any:
        """The entries as a numpy array, which shares them: what is written to it changes the matrix."""
    def trace(self) -> Any:
        """The sum of the diagonal."""
    def transpose(self) -> Matrix:
        """Rows and columns exchanged."""
    @staticmethod
    def unit(n: Any, i: Any, dt: Any = ...) -> Vector:
        """The vector of ``n`` entries with a one at ``i`` and zeros elsewhere."""
    @staticmethod
    def zero(dt: Any, n: Any, m: Any = ...) -> Any:
        """A vector of ``n`` zeros, or a matrix of ``n`` × ``m``."""
    def __abs__(self) -> Self: ...
    def __add__(self, other: Any) -> Self: ...
    def __and__(self, other: Any) -> Self: ...
    def __floordiv__(self, other: Any) -> Self: ...
    def __ge__(self, other: Any) -> Self: ...
    def __gt__(self, other: Any) -> Self: ...
    def __iadd__(self, other: Any) -> Self: ...
    def __iand__(self, other: Any) -> Self: ...
    def __ifloordiv__(self, other: Any) -> Self: ...
    def __ilshift__(self, other: Any) -> Self: ...
    def __imod__(self, other: Any) -> Self: ...
    def __imul__(self, other: Any) -> Self: ...
    def __invert__(self) -> Self: ...
    def __ior__(self, other: Any) -> Self: ...
    def __ipow__(self, other: Any) -> Self: ...
    def __irshift__(self, other: Any) -> Self: ...
    def __isub__(self, other: Any) -> Self: ...
    def __itruediv__(self, other: Any) -> Self: ...
    def __ixor__(self, other: Any) -> Self: ...
    def __le__(self, other: Any) -> Self: ...
    def __lshift__(self, other: Any) -> Self: ...
    def __lt__(self, other: Any) -> Self: ...
    def __matmul__(self, other: Any) -> Any: ...
    def __mod__(self, other: Any) -> Self: ...
    def __mul__(self, other: Any) -> Self: ...
    def __neg__(self) -> Self: ...
    def __or__(self, other: Any) -> Self: ...
    def __pos__(self) -> Self: ...
    def __pow__(self, other: Any) -> Self: ...
    def __radd__(self, other: Any) -> Self: ...
    def __rand__(self, other: Any) -> Self: ...
    def __rfloordiv__(self, other: Any) -> Self: ...
    def __rlshift__(self, other: Any) -> Self: ...
    def __rmatmul__(self, other: Any) -> Any: ...
    def __rmod__(self, other: Any) -> Self: ...
    def __rmul__(self, other: Any) -> Self: ...
    def __ror__(self, other: Any) -> Self: ...
    def __rpow__(self, other: Any) -> Self: ...
    def __rrshift__(self, other: Any) -> Self: ...
    def __rshift__(self, other: Any) -> Self: ...
    def __rsub__(self, other: Any) -> Self: ...
    def __rtruediv__(self, other: Any) -> Self: ...
    def __rxor__(self, other: Any) -> Self: ...
    def __sub__(self, other: Any) -> Self: ...
    def __truediv__(self, other: Any) -> Self: ...
    def __xor__(self, other: Any) -> Self: ...

QuadrantsAssertionError = OctantsAssertionError
QuadrantsCompilationError = OctantsCompilationError
QuadrantsNameError = OctantsNameError
QuadrantsRuntimeError = OctantsRuntimeError
QuadrantsRuntimeTypeError = OctantsRuntimeTypeError
QuadrantsSyntaxError = OctantsSyntaxError
QuadrantsTypeError = OctantsTypeError
TRACE: str

class Vector(Matrix):
    """A small vector: ``oc.Vector([1, 2, 3], dt=oc.f32)``."""
    def __new__(cls, *entries: Any, dt: Any = None) -> Self: ...
    def __class_getitem__(cls, item: Any) -> Any: ...
    @staticmethod
    def field(*args: Any, **kwargs: Any) -> MatrixField:
        """A field of vectors: ``oc.Vector.field(3, oc.f32, shape=8)``. ``dtype`` may be a list with a type for each entry."""
    def get_shape(self) -> Any:
        """``(n,)``."""
    @staticmethod
    def ndarray(*args: Any, **kwargs: Any) -> Ndarray:
        """A zeroed array of vectors: ``oc.Vector.ndarray(3, oc.f32, shape=100)``."""
    @staticmethod
    def tensor(*args: Any, **kwargs: Any) -> Tensor:
        """A zeroed tensor of vectors: ``oc.Vector.tensor(3, oc.f32, shape=100)``."""

WARN: str

def abs(x: Any) -> Any:
    """Magnitude."""

def acos(x: Any) -> Any:
    """Arccosine of a real."""

amdgpu: _Arch
arm64: _Arch

def asin(x: Any) -> Any:
    """Arcsine of a real."""

def atan2(x1: Any, x2: Any) -> Any:
    """The angle of the point ``(x2, x1)``."""

def atomic_cas(x: Any, expected: Any, desired: Any) -> Any:
    """Stores ``desired`` in ``x`` if it holds ``expected``, as one indivisible step; gives the old value."""

def axes(*numbers: Any) -> Any:
    """The axes with the given numbers: ``oc.axes(0, 2)`` is ``oc.ik``."""

def bit_cast(x: Any, dtype: Any) -> Any:
    """The bits of ``x`` read as ``dtype``, which must be as wide."""

def bit_shr(x1: Any, x2: Any) -> Any:
    """Shift right with zeros coming in, whatever the sign of ``x1``."""

def cast(x: Any, dtype: Any) -> Any:
    """``x`` converted by value to ``dtype``."""

def ceil(x: Any, dtype: Any = ...) -> Any:
    """The least integer not below ``x``, as a real or as ``dtype``."""

def clock_counter() -> Any:
    """A counter of the device that grows with time, as ``i64``: the difference of two readings tells how long something took."""

def clock_freq_hz() -> float:
    """How often in a second ``clock_counter`` counts at the device's nominal speed; known on CUDA devices only. A constant in a kernel."""

def compile(kernel: Any, *args: Any, grad: Any = ..., **kwargs: Any) -> None:
    """Compiles a kernel for arguments like these, and launches nothing. A call that follows starts at once.

    ``grad=True`` compiles the derivative that ``kernel.grad`` runs."""

def compile_all(calls: Any, *, background: Any = ..., progress: Any = ..., threads: Any = ...) -> Any:
    """Compiles many kernels at the same time. Each call is a kernel and its arguments: ``(kernel, a, b)``.

    With ``background=True`` it returns at once; ``wait()`` of what it returns ends when all is done. ``progress`` shows a bar on the
    terminal; by default if there is one. The first error is raised when all is done."""

def cos(x: Any) -> Any:
    """Cosine of a real."""

cpu: _Arch

def create_event() -> Event:
    """A new event. It is passed until it is recorded."""

def create_stream(*, priority: Any = ...) -> Stream:
    """A new stream. Below 0 a ``priority`` is more urgent than the default stream's, above 0 less; a hint, as in torch."""

cuda: _Arch

def deactivate_all_snodes() -> None:
    """Deactivates all cells of all sparse nodes."""

def device_properties() -> DeviceProperties:
    """What the device of the session is: its cores, its shared memory, its registers and its memory, as they are now.

    Starts a session if there is none."""

def dump_compile_config() -> Any:
    """Prints all options of the session."""

def eig(A: Any, dt: Any = ...) -> Any:
    """Eigenvalues and eigenvectors of a 2×2 matrix.

    Row ``i`` of the first result is eigenvalue ``i``: its real and its imaginary part. Column ``i`` of the second is its eigenvector: real
    and imaginary part of the first entry, then of the second."""

def erf(x: Any) -> Any:
    """The error function of a real."""

def exp(x: Any) -> Any:
    """e to the power of ``x``."""

extension: __Extensions

def floor(x: Any, dtype: Any = ...) -> Any:
    """The greatest integer not above ``x``, as a real or as ``dtype``."""

def frexp(x: Any) -> Any:
    """``(m, e)`` with ``x == m * 2**e`` and ``0.5 <= abs(m) < 1``; zeros, infinities and NaN are their own mantissa, with exponent 0.

    f16 and f32 go through f64, which holds all their numbers as normal ones."""

def global_thread_idx() -> Any:
    """The thread's number among all of the loop."""

gpu: list[_Arch]
i: _Axes
ij: _Axes
ijk: _Axes
ijkl: _Axes
ijl: _Axes
ik: _Axes
ikl: _Axes
il: _Axes

def install_as(peer: Any) -> None:
    """Lets every ``import`` of a peer ("quadrants" or "taichi") that comes after it find Octants, deep ones too.

    >>> import octants
    >>> octants.install_as("quadrants")
    >>> import quadrants as qd"""

def is_extension_enabled(ext: Any) -> bool:
    """Whether the current session's device has an extension."""

def is_logging_effective(level: Any) -> bool:
    """Whether messages of a level are shown."""

j: _Axes
jk: _Axes
jkl: _Axes
jl: _Axes
k: _Axes
kl: _Axes
l: _Axes

def log(x: Any) -> Any:
    """Natural logarithm."""

def loop_config(
    *,
    block_dim: Any = ...,
    serialize: Any = ...,
    parallelize: Any = ...,
    block_dim_adaptive: Any = ...,
    bit_vectorize: Any = ...,
    name: Any = ...,
) -> Any:
    """Says how the next ``for`` runs."""

def make_spd(A: Any, dt: Any = ...) -> Any:
    """The nearest symmetric matrix without negative eigenvalues, for symmetric matrices up to 6×6."""

def max(x: Any, *others: Any) -> Any:
    """The greatest of its arguments."""

metal: _Arch

def min(x: Any, *others: Any) -> Any:
    """The least of its arguments."""

def one(x: Any) -> Any:
    """One of the type of ``x``."""

def outer(a: Any, b: Any) -> Any:
    """The product of two columns, of which each lane has an entry: ``tile -= oc.outer(a, b)``. It is taken from a tile, and nothing else is done with it."""

def perf_dispatch(
    *,
    get_geometry_hash: Any,
    first_warmup: Any = ...,
    warmup: Any = ...,
    active: Any = ...,
    repeat_after_count: Any = ...,
    repeat_after_seconds: Any = ...,
) -> Any:
    """Makes a function the name of several implementations, which ``register`` adds; a call goes to the fastest of them.

    ``get_geometry_hash`` says for which arguments the same one is the fastest. For each of its values the implementations take turns:
    ``first_warmup`` calls that are not timed, then ``active`` timed ones. They are timed anew after so many calls or seconds; a number that
    is not positive says never. If neither is given, after 300 calls.

    >>> @oc.perf_dispatch(get_geometry_hash=lambda x: x.shape)
    ... def solve(x): ...
    >>> @solve.register
    ... @oc.kernel
    ... def by_rows(x: oc.types.NDArray[oc.f32, 2]): ..."""

def polar_decompose(A: Any, dt: Any = ...) -> Any:
    """``R, S`` with ``A = R @ S``, R orthogonal and S symmetric; for 2×2 and 3×3.

    For 3×3, R is a rotation, and S has a negative eigenvalue if the determinant of A is negative. For 2×2, S has none and R may be a
    reflection."""

def pow(base: Any, exponent: Any) -> Any:
    """``base ** exponent``."""

python: _Arch

def randn(dt: Any = ...) -> Any:
    """A random number with mean 0 and variance 1, by the method of Box and Muller."""

def random(dtype: Any = ...) -> Any:
    """A random number: a real in [0, 1), or an integer of all values of its type. Each iteration of a loop draws its own."""

def raw_div(x1: Any, x2: Any) -> Any:
    """Division as in C: integers truncate toward zero."""

def raw_mod(x1: Any, x2: Any) -> Any:
    """Remainder as in C: it has the sign of ``x1``."""

reference: _Arch
remote: _Arch
root: _Root

def round(x: Any, dtype: Any = ...) -> Any:
    """The nearest integer, halves away from zero, as a real or as ``dtype``."""

def rsqrt(x: Any) -> Any:
    """One over the square root."""

def select(cond: Any, x1: Any, x2: Any) -> Any:
    """``x1`` where ``cond`` holds, else ``x2``; both are evaluated."""

def set_logging_level(level: Any) -> None:
    """Sets the least level that is shown: "trace", "debug", "info", "warn", "error", "critical" or "off"."""

def sin(x: Any) -> Any:
    """Sine of a real."""

def solve(A: Any, b: Any, dt: Any = ...) -> Any:
    """The solution ``x`` of ``A @ x = b`` for 2×2 and 3×3, by elimination with pivots."""

def sqrt(x: Any) -> Any:
    """Square root."""

def static_assert(cond: Any, msg: Any = ...) -> Any:
    """Refuses the program while compiling if ``cond`` is false."""

def static_print(*args: Any, sep: Any = ..., end: Any = ...) -> Any:
    """Prints while compiling."""

def svd(A: Any, dt: Any = ...) -> Any:
    """``U, S, V`` with ``A = U @ S @ V.transpose()``, the singular values in descending order; for 2×2 and 3×3.

    For 3×3, U and V are rotations and the last singular value may be negative. For 2×2, no singular value is negative
    and U may be a reflection."""

def sym_eig(A: Any, dt: Any = ...) -> Any:
    """Eigenvalues in ascending order and a matrix of unit eigenvectors as columns, of a symmetric matrix up to 6×6."""

def tan(x: Any) -> Any:
    """Tangent of a real."""

def tanh(x: Any) -> Any:
    """Hyperbolic tangent of a real."""

def tensor(
    dtype: Any, shape: Any, *, backend: Any = ..., layout: Any = ..., needs_grad: Any = ..., **unknown: Any
) -> Tensor:
    """A zeroed tensor: ``oc.tensor(oc.f32, (480, 640))``, in an array, or with ``backend=oc.Backend.FIELD`` in a field.

    ``layout=(1, 0)`` lays the axes out in another order in memory, the slowest first; programs do not see a difference.
    ``needs_grad=True`` makes ``x.grad`` too, for reals."""

def volatile_load(target: Any) -> Any:
    """Reads an array element anew each time: never merged, moved or cached."""

vulkan: _Arch

def wrap(impl: Any) -> Tensor:
    """A handle on an array or a field."""

x64: _Arch
x86_64: _Arch

def zero(x: Any) -> Any:
    """Zero of the type of ``x``."""
