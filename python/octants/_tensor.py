"""``oc.tensor``: one handle for arrays and fields, so that a program chooses its memory in one place."""

from __future__ import annotations

import enum
from copy import copy

from . import _octants
from ._octants import Ndarray, host_only

TYPE_CHECKING = False  # as `typing` says it, without its weight
if TYPE_CHECKING:
    from typing import Any


class Backend(enum.IntEnum):
    """Where the elements of a tensor lie."""

    FIELD = 0
    NDARRAY = 1


class Tensor(_octants.Tensor):
    """A handle on an array or a field, and the annotation of parameters that take either, or ``None``: ``x: oc.Tensor``.

    Make one with ``oc.tensor(dtype, shape)``, or of an array or field with ``oc.wrap``. Kernels see the array or field itself: each kind
    of argument has code of its own; for ``None``, a block under ``if oc.static(x is not None):`` is not compiled.
    """

    _grad: Tensor | None = None

    # ---- what it is ----

    @property
    def shape(self) -> tuple[int, ...]:
        """How many elements there are along each axis."""
        return self._impl.shape

    @property
    def dtype(self):
        """The type of the elements, or of their entries."""
        return self._impl.dtype

    @property
    def layout(self) -> tuple[int, ...] | None:
        """The axes from the slowest to the fastest in memory, if that is not their own order."""
        return self._impl.layout

    def _backend_enum(self) -> Backend:
        return Backend.NDARRAY if isinstance(self._impl, Ndarray) else Backend.FIELD

    def _backend_name(self) -> str:
        return self._backend_enum().name

    def __repr__(self):
        inner = self._impl
        if not isinstance(inner, Ndarray) and inner._snode is None and not inner._is_bound:
            return f"{type(self).__name__}({inner!r})"
        layout = "" if self.layout is None else f", layout={self.layout}"
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype}, backend={self._backend_name()}{layout})"

    # ---- gradients ----

    @property
    def grad(self) -> Any:
        """The gradients, always the same handle. ``None`` for an array without any; of a field, they may not be placed."""
        inner = self._impl.grad
        if inner is None:
            return None
        if self._grad is None or self._grad._impl is not inner:
            self._grad = wrap(inner)
        return self._grad

    def has_grad(self) -> bool:
        """Whether there is memory for gradients."""
        return self._impl.has_grad()

    def has_dual(self) -> bool:
        """Whether there is memory for duals."""
        return self._impl.has_dual()

    # ---- elements ----

    def __getitem__(self, index) -> Any:
        return self._impl[self._key(index)]

    def __setitem__(self, index, value):
        self._impl[self._key(index)] = value

    def _key(self, index):
        """An index, which is a whole tuple where a layout permutes the axes."""
        host_only("__getitem__")
        layout = self.layout
        if layout is None:
            return index
        if not isinstance(index, (tuple, list)):
            raise TypeError(
                f"a tensor with a layout is indexed with all {len(layout)} indices, not with {type(index).__name__}"
            )
        if len(index) != len(layout):
            raise TypeError(f"a tensor with a layout of {len(layout)} axes is indexed with {len(index)} indices")
        return tuple(index)

    def __iter__(self):
        raise NotImplementedError(
            "a tensor is looped over in kernels; on the host, loop over to_numpy() or over indices"
        )

    def __float__(self) -> float:
        return float(self._impl)

    def __int__(self) -> int:
        return int(self._impl)

    def fill(self, value, *, qd_stream=None) -> None:
        """Sets every element."""
        self._impl.fill(value, qd_stream=qd_stream)

    def copy_from(self, other, *, qd_stream=None) -> None:
        """Sets all elements to those of another tensor of the same backend and shape, or of an array or field of that kind."""
        self._impl.copy_from(other._impl if isinstance(other, Tensor) else other, qd_stream=qd_stream)

    # ---- other libraries ----

    def to_numpy(self, dtype=None, *, copy: bool | None = True, qd_stream=None):
        """A numpy array with all elements. ``copy=None`` shares the memory if it can; ``copy=False`` refuses if it cannot."""
        return self._impl.to_numpy(dtype=dtype, copy=copy, qd_stream=qd_stream)

    def from_numpy(self, arr, *, qd_stream=None) -> None:
        """Sets all elements from a numpy array of the same shape; other types are converted."""
        self._impl.from_numpy(arr, qd_stream=qd_stream)

    def to_torch(self, device=None, *, copy: bool | None = True, qd_stream=None):
        """A torch tensor with all elements; ``copy`` as in ``to_numpy``."""
        return self._impl.to_torch(device, copy=copy, qd_stream=qd_stream)

    def from_torch(self, arr, *, qd_stream=None) -> None:
        """Sets all elements from a torch tensor of the same shape, from whichever device."""
        self._impl.from_torch(arr, qd_stream=qd_stream)

    def to_dlpack(self, versioned: bool = False):
        """A capsule by which another library sees the memory without a copy."""
        return self._impl.to_dlpack(versioned)

    @property
    def __array_interface__(self):
        return self._impl.__array_interface__

    @property
    def __cuda_array_interface__(self):
        return self._impl.__cuda_array_interface__

    def __array__(self, dtype=None, copy=None):
        return self._impl.__array__(dtype, copy)

    def __dlpack__(self, **options):
        return self._impl.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._impl.__dlpack_device__()

    def __copy__(self) -> Tensor:
        make, args = self.__reduce__()
        return make(copy(self._impl)) if make is wrap else make(*args)

    def __reduce__(self) -> tuple[Any, tuple]:
        inner = self._impl
        if isinstance(inner, Ndarray) or inner._placement is not None:
            return wrap, (inner,)
        # A field in a tree of nodes becomes one with a tree of its own.
        from ._pickling import companion_contents

        return _rebuild, (_element_type(inner), self.shape, self.layout, inner.to_numpy(), companion_contents(inner))


class VectorTensor(Tensor):
    """A tensor whose elements are vectors. Make one with ``oc.Vector.tensor(n, dtype, shape)``."""

    @property
    def element_shape(self) -> tuple[int, ...]:
        """The extents of an element."""
        return _element_shape(self._impl)


class MatrixTensor(Tensor):
    """A tensor whose elements are matrices. Make one with ``oc.Matrix.tensor(n, m, dtype, shape)``."""

    @property
    def element_shape(self) -> tuple[int, ...]:
        """The extents of an element."""
        return _element_shape(self._impl)


def _element_shape(inner) -> tuple[int, ...]:
    return inner.element_shape if isinstance(inner, Ndarray) else getattr(inner, "_element_shape", ())


def _element_type(field):
    """The type of a field's elements, as ``oc.field`` takes it."""
    from ._matrix.types import matrix, vector

    extents = _element_shape(field)
    if not extents:
        return field.dtype
    return vector(extents[0], field.dtype) if len(extents) == 1 else matrix(*extents, dtype=field.dtype)


def wrap(impl) -> Tensor:
    """A handle on an array or a field."""
    host_only("wrap")
    kind = {0: Tensor, 1: VectorTensor}.get(len(_element_shape(impl)), MatrixTensor)
    return kind(impl)


def tensor(dtype, shape, *, backend=Backend.NDARRAY, layout=None, needs_grad=False, **unknown) -> Tensor:
    """A zeroed tensor: ``oc.tensor(oc.f32, (480, 640))``, in an array, or with ``backend=oc.Backend.FIELD`` in a field.

    ``layout=(1, 0)`` lays the axes out in another order in memory, the slowest first; programs do not see a difference.
    ``needs_grad=True`` makes ``x.grad`` too, for reals.
    """
    from ._matrix.types import MatrixType

    _refuse("oc.tensor", unknown, "backend, dtype, layout, needs_grad, shape")
    if layout is not None and isinstance(dtype, MatrixType):
        raise TypeError("layout= is for tensors of numbers; vectors and matrices lie in the order of the axes")
    return _made(dtype, shape, backend, layout, needs_grad)


def vector_tensor(n, dtype, shape, *, backend=Backend.NDARRAY, needs_grad=False, **unknown) -> Tensor:
    """A zeroed tensor of vectors: ``oc.Vector.tensor(3, oc.f32, shape=100)``."""
    from ._matrix.types import vector

    _refuse("oc.Vector.tensor", unknown, "backend, dtype, n, needs_grad, shape")
    return _made(vector(n, dtype), shape, backend, None, needs_grad)


def matrix_tensor(n, m, dtype, shape, *, backend=Backend.NDARRAY, needs_grad=False, **unknown) -> Tensor:
    """A zeroed tensor of matrices: ``oc.Matrix.tensor(3, 3, oc.f32, shape=100)``."""
    from ._matrix.types import matrix

    _refuse("oc.Matrix.tensor", unknown, "backend, dtype, m, n, needs_grad, shape")
    return _made(matrix(n, m, dtype), shape, backend, None, needs_grad)


def _refuse(name: str, unknown: dict, accepted: str) -> None:
    if "order" in unknown:
        raise TypeError(f'{name}() takes no order=; a tensor\'s axes are permuted by layout=(1, 0) for order="ji"')
    if unknown:
        raise TypeError(f"{name}() got unexpected keyword arguments {', '.join(unknown)}; it takes {accepted}")


def _made(dtype, shape, backend, layout, needs_grad) -> Tensor:
    from ._arrays import ndarray
    from ._fields.making import field
    from ._matrix.promotion import data_type
    from ._matrix.types import MatrixType

    host_only("tensor")
    try:
        backend = Backend(backend)
    except ValueError:
        raise ValueError(f"backend={backend!r} is neither oc.Backend.FIELD nor oc.Backend.NDARRAY") from None
    shape = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
    layout = _permutation(layout, len(shape))
    scalar = data_type(dtype.dtype if isinstance(dtype, MatrixType) and dtype.dtype is not None else dtype)
    needs_grad = bool(needs_grad) and not scalar.is_integral
    if backend is Backend.NDARRAY:
        return wrap(ndarray(dtype, shape, needs_grad, layout=layout))
    return wrap(field(dtype, shape, order=layout, needs_grad=needs_grad))


def _permutation(layout, rank: int) -> tuple[int, ...] | None:
    """A layout as a tuple; ``None`` if it leaves the axes where they are."""
    if layout is None:
        return None
    axes = tuple(layout) if hasattr(layout, "__iter__") else layout
    if not isinstance(axes, tuple) or any(not hasattr(a, "__index__") or isinstance(a, bool) for a in axes):
        raise ValueError(f"layout={layout!r} is not a tuple of axes, such as (1, 0)")
    if len(axes) != rank:
        named = "1 axis" if len(axes) == 1 else f"{len(axes)} axes"
        raise ValueError(f"layout={layout!r} has {named}, and the shape has {rank}")
    axes = tuple(a.__index__() for a in axes)
    if sorted(axes) != list(range(rank)):
        raise ValueError(f"layout={layout!r} is not a permutation of the axes from 0 to {rank - 1}")
    return None if axes == tuple(range(rank)) else axes


def _rebuild(dtype, shape, layout, data, companions: dict) -> Tensor:
    """Makes a tensor again whose field lay in a tree of nodes."""
    from ._pickling import set_companions
    from ._session import runtime

    if runtime.arch is None:
        raise RuntimeError("call oc.init() before unpickling a tensor")
    made = _made(dtype, shape, Backend.FIELD, layout, False)
    made.from_numpy(data)
    set_companions(made._impl, companions)
    return made
