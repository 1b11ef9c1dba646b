"""Functions of the host in a tape: left out of it, or with gradients of their own."""

from __future__ import annotations

import functools

from ..exceptions import OctantsRuntimeError
from .tape import current_recorder, unrecorded, watchers

TYPE_CHECKING = False  # as `typing` says it, without its weight
if TYPE_CHECKING:
    from collections.abc import Callable


def no_grad(func):
    """Decorates a function whose calls of kernels a Tape does not record."""

    @functools.wraps(func)
    def decorated(*args, **kwargs):
        if any(one._computes_duals for one in watchers()) and current_recorder() is not None:
            raise OctantsRuntimeError(
                f"`{func.__name__}` has no second derivatives, since no_grad decorates it: the tape takes what it writes for constants, and it would have tangents"
            )
        return unrecorded(func, args, kwargs)

    return decorated


def grad_replaced(func):
    """Decorates a function whose calls of kernels a Tape does not record; the function that ``grad_for`` registers goes back instead.

    >>> @oc.ad.grad_replaced
    ... def forward(a):
    ...     multiply(a)
    >>> @oc.ad.grad_for(forward)
    ... def backward(a):
    ...     multiply_back(a)
    """
    return _Replaced(func)


def grad_for(primal):
    """Decorates the function that goes back for one that ``grad_replaced`` decorates. It takes the same arguments."""
    replaced = getattr(primal, "__func__", primal)
    if not isinstance(replaced, _Replaced):
        name = getattr(primal, "__name__", repr(primal))
        raise OctantsRuntimeError(f"the primal function `{name}` must be decorated by oc.ad.grad_replaced")

    def register(func):
        if replaced._backward is not None:
            raise OctantsRuntimeError(f"`{replaced.__name__}` has a function for its gradients already")
        replaced._backward = func
        return func

    return register


class _Replaced:
    """A function with gradients of its own."""

    __name__: str
    #: Whether going back reads arrays as they were at the call.
    _reads_arrays = True

    def __init__(self, func: Callable):
        functools.update_wrapper(self, func)
        self._func = func
        self._backward: Callable | None = None

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        return _BoundReplaced(self, instance)

    def __call__(self, *args, **kwargs):
        recorder = current_recorder()
        if recorder is None:
            return self._func(*args, **kwargs)
        return recorder._record_whole(self, self._func, args, kwargs)

    def grad(self, *args, **kwargs):
        """Goes back."""
        if self._backward is None:
            raise OctantsRuntimeError(
                f"`{self.__name__}` is decorated by oc.ad.grad_replaced, and no function is decorated by oc.ad.grad_for({self.__name__})"
            )
        self._backward(*args, **kwargs)


class _BoundReplaced:
    """Such a function as a method."""

    def __init__(self, function: _Replaced, instance):
        self.__func__ = function
        self.__self__ = instance

    def __call__(self, *args, **kwargs):
        return self.__func__(self.__self__, *args, **kwargs)

    def grad(self, *args, **kwargs):
        """Goes back."""
        return self.__func__.grad(self.__self__, *args, **kwargs)
