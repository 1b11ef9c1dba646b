"""Arrays in device memory: ``oc.ndarray`` and its classes."""

from __future__ import annotations

from copy import copy, deepcopy

from .. import _octants
from .._matrix.promotion import data_type
from .._matrix.types import MatrixType
from .._octants import host_only
from .._session import is_watched, runtime
from .._tensor import Tensor
from ..exceptions import OctantsRuntimeError, OctantsSyntaxError
from .torch_tensors import set_from_torch, shared_on_host, torch_of


class NdarrayTypeMetadata:
    """What kernels are compiled for of an array. (No dataclass: that module would make importing slower.)"""

    __slots__ = ("element_type", "layout", "needs_grad", "shape")

    def __init__(
        self, element_type: object, shape: tuple[int, ...], needs_grad: bool, layout: tuple[int, ...] | None
    ) -> None:
        self.element_type = element_type
        self.shape = shape
        self.needs_grad = needs_grad
        self.layout = layout

    def _values(self) -> tuple:
        return self.element_type, self.shape, self.needs_grad, self.layout

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NdarrayTypeMetadata) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        members = (f"{name}={getattr(self, name)!r}" for name in ("element_type", "shape", "needs_grad", "layout"))
        return f"NdarrayTypeMetadata({', '.join(members)})"


class Ndarray(_octants.Ndarray):
    """An array in device memory, whatever its elements are. Make one with ``oc.ndarray(dtype, shape)``."""

    #: The array of gradients.
    grad: Ndarray | None = None
    #: The array of duals.
    dual: Ndarray | None = None

    def has_grad(self) -> bool:
        """Whether there is an array of gradients."""
        return self.grad is not None

    def has_dual(self) -> bool:
        """Whether there is an array of duals."""
        return self.dual is not None

    def _second_derivatives(self) -> Ndarray:
        """The duals of an array of gradients, made when they are first asked for."""
        if self.dual is None:
            self.dual = _made(self.element_type, self.shape, self.layout)
        return self.dual

    def __iter__(self):
        host_only("__getitem__")
        if len(self.shape) != 1:
            raise TypeError(
                f"an array of {len(self.shape)} axes is not looped over on the host: loop over to_numpy() or over indices"
            )
        return (self[i] for i in range(self.shape[0]))

    def copy_from(self, other, *, qd_stream=None) -> None:
        """Copies all elements of another array of the same shape. In a Tape or in FwdMode, derivatives go with them."""
        other = other._impl if isinstance(other, Tensor) else other
        if (
            is_watched()
            and isinstance(other, Ndarray)
            and _are_real(self, other)
            and (self.shape, self.element_shape) == (other.shape, other.element_shape)
        ):
            from ..ad.sums import copy_arrays

            copy_arrays(self, other, qd_stream=qd_stream)  # type: ignore[call-arg]
            return
        super().copy_from(other, qd_stream=qd_stream)

    def __copy__(self) -> Ndarray:
        made = _made(self.element_type, self.shape, self.layout)
        for name, value in vars(self).items():
            setattr(made, name, copy(value) if name in ("grad", "dual") else value)
        made.copy_from(self)
        return made

    def __deepcopy__(self, memo: dict) -> Ndarray:
        made = _made(self.element_type, self.shape, self.layout)
        # What belongs to it may refer to it.
        memo[id(self)] = made
        for name, value in vars(self).items():
            setattr(made, name, deepcopy(value, memo))
        made.copy_from(self)
        return made

    def __reduce__(self):
        args = self.element_type, self.shape, self.to_numpy(), self.layout
        return rebuild_ndarray, args, vars(self) or None

    def get_type(self) -> NdarrayTypeMetadata:
        """What kernels are compiled for of it."""
        return NdarrayTypeMetadata(self.element_type, self.shape, self.has_grad(), self.layout)

    def to_torch(self, device=None, *, copy: bool | None = True, qd_stream=None):
        """A torch tensor with all elements. ``copy=None`` shares the memory if it can; ``copy=False`` refuses if it cannot."""
        if (copy is None or copy is False) and device is None and (shared := shared_on_host(self)) is not None:
            return shared
        return torch_of(self, lambda copy: self.to_numpy(copy=copy, qd_stream=qd_stream), device, copy, qd_stream)

    def from_torch(self, arr, *, qd_stream=None) -> None:
        """Sets all elements from a torch tensor of the same shape, from whichever device; other types are converted."""
        set_from_torch(self, arr, lambda array: self.from_numpy(array, qd_stream=qd_stream), qd_stream)


class ScalarNdarray(Ndarray):
    """An array of scalars in device memory. Make one with ``oc.ndarray(dtype, shape)``."""


class VectorNdarray(Ndarray):
    """An array of vectors in device memory. Make one with ``oc.Vector.ndarray(n, dtype, shape)``."""

    @property
    def n(self) -> int:
        """How many entries an element has."""
        return self.element_shape[0]


class MatrixNdarray(Ndarray):
    """An array of matrices in device memory. Make one with ``oc.Matrix.ndarray(n, m, dtype, shape)``."""

    @property
    def n(self) -> int:
        """How many rows an element has."""
        return self.element_shape[0]

    @property
    def m(self) -> int:
        """How many columns an element has."""
        return self.element_shape[1]


def ndarray(dtype, shape, needs_grad=False, *, needs_dual=False, layout=None):
    """A zeroed array: ``oc.ndarray(oc.f32, (480, 640))``. ``needs_grad=True`` makes ``x.grad`` too, ``needs_dual=True`` makes ``x.dual``.

    ``layout=(1, 0)`` lays the axes out in another order in memory, the slowest first; indices and extents stay as they are.
    """
    made = _made(dtype, shape, layout)
    if needs_grad or needs_dual:
        scalar = data_type(made.dtype)
        if scalar.is_integral:
            raise OctantsRuntimeError(
                f"{scalar} is not supported for ndarray with `needs_grad=True` or `needs_dual=True`."
            )
        made.grad = _made(dtype, shape, layout) if needs_grad else None
        made.dual = _made(dtype, shape, layout) if needs_dual else None
    return made


def _are_real(*arrays: Ndarray) -> bool:
    return not any(data_type(array.dtype).is_integral for array in arrays)


def _made(dtype, shape, layout):
    if not isinstance(dtype, MatrixType):
        return ScalarNdarray(runtime, dtype, shape, layout)
    if dtype.unpacked:
        raise OctantsSyntaxError(f"{dtype!r} is for members of an @oc.dataclass, not for elements of an array")
    dtype.require_dtype("elements of an array")
    return (VectorNdarray if dtype.ndim == 1 else MatrixNdarray)(runtime, dtype, shape, layout)


def device_copy(source):
    """An array with the elements of an array, a view or a field."""
    if isinstance(source, Ndarray):
        made = _made(source.element_type, source.shape, source.layout)
        made.copy_from(source)
        return made
    elements = source.to_numpy()
    made = _made(elements.dtype, elements.shape, None)
    made.from_numpy(elements)
    return made


def rebuild_ndarray(dtype, shape, data, layout=None):
    """Makes an array again from its pickle, which sets gradients and duals afterwards."""
    if runtime.arch is None:
        raise RuntimeError("call oc.init() before unpickling an ndarray")
    array = _made(dtype, shape, layout)
    array.from_numpy(data)
    return array
