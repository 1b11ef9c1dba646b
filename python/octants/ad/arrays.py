"""Arrays among the arguments of kernels, and what tapes require of them."""

from __future__ import annotations

import math
import sys
from copy import copy
from types import FunctionType, ModuleType

from .._fields.field import Field
from .._fields.matrix import MatrixField
from .._fields.scalar import ScalarField
from .._matrix import Matrix
from .._octants import BufferView, Ndarray
from .._tensor import Tensor
from ..exceptions import OctantsRuntimeError

TYPE_CHECKING = False  # as `typing` says it, without its weight
if TYPE_CHECKING:
    from collections.abc import Iterator


def unwrapped(array):
    """The array or field behind a tensor."""
    return array._impl if isinstance(array, Tensor) else array


def is_torch(one) -> bool:
    """Whether it is a tensor of torch's, which nobody imports for the question's sake."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(one, torch.Tensor)


def name_of(array) -> str:
    """How a message calls it."""
    name = getattr(array, "name", "")
    return f"`{name}`" if name else repr(array)


def has_gradients(array) -> bool:
    """Whether an array or field of the session has gradients."""
    return hasattr(array, "has_grad") and array.has_grad()


def require_loss(loss) -> None:
    """Refuses what cannot be the loss of a tape."""
    if isinstance(loss, Field):
        if not isinstance(loss, ScalarField) or loss.shape != ():
            kind = "vectors or matrices" if isinstance(loss, MatrixField) else f"shape {loss.shape}"
            raise OctantsRuntimeError(
                f"the loss of a Tape is a 0-D field, which only contains one element, not one of {kind}"
            )
        if not loss.has_grad():
            raise OctantsRuntimeError("Gradients of loss are not allocated, please set needs_grad=True for the field")
    elif isinstance(loss, Ndarray):
        if math.prod((*loss.shape, *loss.element_shape)) != 1:
            raise OctantsRuntimeError(
                f"the loss of a Tape is an ndarray with only one element, not of shape {loss.shape}"
            )
        if loss.grad is None:  # type: ignore[attr-defined]
            raise OctantsRuntimeError("Gradients of loss are not allocated, please set needs_grad=True for the ndarray")
    elif is_torch(loss):
        if loss.numel() != 1:
            raise OctantsRuntimeError(
                f"the loss of a Tape is a torch tensor with only one element, not of shape {tuple(loss.shape)}"
            )
        if not (loss.requires_grad and loss.is_leaf):
            raise OctantsRuntimeError(
                "Gradients of loss are not allocated, please set requires_grad=True for the tensor"
            )
    else:
        raise OctantsRuntimeError(
            "the loss of a Tape is a 0-D field, an ndarray or a torch tensor with only one element, "
            f"not {type(loss).__name__}"
        )


def set_all(array, value: float) -> None:
    """Sets all elements of an array, a field or a tensor of torch's."""
    if is_torch(array):
        array.detach().fill_(value)
    else:
        array.fill(value)


def numbers_of(array):
    """A numpy array with the elements."""
    if is_torch(array):
        return array.detach().cpu().numpy().copy()
    return array.to_numpy() if hasattr(array, "to_numpy") else array.copy()


def set_numbers(array, numbers) -> None:
    """Sets the elements to those of a numpy array."""
    if is_torch(array):
        import torch  # pyright: ignore[reportMissingImports]

        array.detach().copy_(torch.from_numpy(numbers))
    else:
        array.from_numpy(numbers)


def companion_owners() -> Iterator:
    """The fields that have gradients, but for sparse ones."""
    from .._fields.builder import companions

    for field in list(companions):
        owner = None if field._companion_owner is None else field._companion_owner()
        if owner is not None and owner._is_live and not owner._is_sparse and not owner._is_struct:
            yield owner


def own_fields() -> Iterator:
    """The fields that have memory, but for gradients and duals."""
    from .._fields.builder import placed

    for field in list(placed):
        if field._is_live and field._companion_kind is None:
            yield field


def with_gradients(arrays, what: str) -> list:
    """The arrays of a list, or the one array, all of which have gradients."""
    listed = arrays if isinstance(arrays, (list, tuple)) else [arrays]
    found = [unwrapped(one) for one in listed]
    for one in found:
        if not isinstance(one, (ScalarField, MatrixField, Ndarray)) or not one.has_grad():  # type: ignore[union-attr]
            raise OctantsRuntimeError(f"{what} are fields or ndarrays with needs_grad=True, not {one!r}")
    return found


def arrays_in(objects, seen: set[int] | None = None) -> Iterator:
    """The ndarrays and the tensors of torch's among arguments and their members, each once."""
    seen = set() if seen is None else seen
    for one in objects:
        if isinstance(one, Tensor):
            one = one._impl
        if isinstance(one, BufferView):
            one = one.get_ndarray()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, Ndarray) or is_torch(one):
            yield one
        elif isinstance(one, (list, tuple)):
            yield from arrays_in(one, seen)
        elif isinstance(one, dict):
            yield from arrays_in(one.values(), seen)
        elif hasattr(type(one), "__dataclass_fields__") or hasattr(type(one), "__octants_template_primitives__"):
            yield from arrays_in(_members(one), seen)


_NUMBERS = (bool, int, float, str, type(None))


class MembersThen:
    """The numbers and vectors that objects among arguments held, which they hold again inside of ``with``: who goes back for a function finds what that has left."""

    def __init__(self, objects):
        self._then: list[tuple] = []
        self._find(objects, set())
        #: What they held outside, and what was set in its place.
        self._outside: list[tuple] = []

    def _find(self, objects, seen: set[int]) -> None:
        stack = list(objects)
        while stack:
            one = stack.pop()
            if isinstance(one, _NUMBERS) or id(one) in seen:
                continue
            if isinstance(one, (list, tuple, dict)):
                seen.add(id(one))
                held_by = one.values() if isinstance(one, dict) else one
                stack.extend(value for value in held_by if not isinstance(value, _NUMBERS))
                continue
            held = getattr(one, "__dict__", None)
            # What a module holds is of the program, not of the object.
            if (
                not isinstance(held, dict)
                or isinstance(one, (type, ModuleType, FunctionType, Field, Ndarray))
                or is_torch(one)
            ):
                continue
            seen.add(id(one))
            for name, value in list(held.items()):
                if isinstance(value, (bool, int, float, str, Matrix)):
                    self._then.append((held, name, copy(value)))
            stack.extend(held.values())

    def __enter__(self) -> None:
        for held, name, value in self._then:
            now = held.get(name, self)
            if not _is_same(now, value):
                held[name] = value
                self._outside.append((held, name, value, now))

    def __exit__(self, kind, error, traceback) -> None:
        for held, name, value, now in self._outside:
            if held.get(name) is value:
                held[name] = now
        self._outside.clear()


def _is_same(now, then) -> bool:
    if isinstance(then, Matrix):
        return isinstance(now, Matrix) and now.to_numpy().tobytes() == then.to_numpy().tobytes()
    return type(now) is type(then) and (now == then or (now != now and then != then))


def _members(one) -> Iterator:
    """What an object holds, in its dictionary or in slots."""
    yield from getattr(one, "__dict__", {}).values()
    for name in (name for kind in type(one).__mro__ for name in _slots(kind)):
        if hasattr(one, name):
            yield getattr(one, name)


def _slots(kind: type) -> tuple:
    slots = kind.__dict__.get("__slots__", ())
    return tuple(name for name in ((slots,) if isinstance(slots, str) else slots) if not name.startswith("__"))
