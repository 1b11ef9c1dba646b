"""Derivatives of programs: ``oc.ad.Tape`` in reverse mode, ``oc.ad.FwdMode`` in forward mode.

>>> with oc.ad.Tape(loss):
...     compute_loss()
>>> x.grad  # the derivatives of the loss
"""

from __future__ import annotations

import functools
import math
import warnings
from _thread import get_ident

from ._fields.builder import companions, materialise_root
from ._fields.field import Field
from ._fields.matrix import MatrixField
from ._fields.scalar import ScalarField
from ._octants import BufferView, Kernel, Ndarray, Record, Sinks, host_only
from ._session import runtime
from ._tensor import Tensor
from .exceptions import OctantsAssertionError, OctantsRuntimeError

TYPE_CHECKING = False  # as `typing` says it, without its weight
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "FwdMode",
    "Tape",
    "clear_all_gradients",
    "grad_for",
    "grad_replaced",
    "gradcheck",
    "no_grad",
    "value_and_grad",
]

#: What watches the calls of kernels, by the thread that makes them.
_watching: dict[int, Tape | FwdMode] = {}


def _call(kernel: Kernel, args: tuple, kwargs: dict | None):
    """A call of a kernel while something watches."""
    watcher = _watching.get(get_ident())
    return kernel._launch(args, kwargs, False) if watcher is None else watcher._call(kernel, args, kwargs)


def _watch(watcher: Tape | FwdMode) -> None:
    if get_ident() in _watching:
        raise OctantsRuntimeError("Tape and FwdMode cannot be nested: another one is active in this thread")
    _watching[get_ident()] = watcher
    runtime.call_hook = _call


def _unwatch() -> Tape | FwdMode | None:
    watcher = _watching.pop(get_ident(), None)
    if not _watching:
        runtime.call_hook = None
    return watcher


def clear_all_gradients(gradient_type: str = "grad") -> None:
    """Sets the gradients of all fields to zero, or their duals: ``gradient_type="dual"``."""
    host_only("clear_all_gradients")
    if gradient_type not in ("grad", "dual"):
        raise ValueError(f'gradient_type is "grad" or "dual", not {gradient_type!r}')
    materialise_root()
    for field in list(companions):
        if field._companion_kind == gradient_type and field._is_live:
            field.fill(0)


class Tape:
    """Records the calls of kernels inside of ``with``; at its end the derivatives of the loss go back through them.

    The loss is a field without axes or an ndarray of one element, with gradients; it is set to zero at the beginning, and so are all gradients of
    fields, and those of ndarrays that kernels are called with, unless ``clear_gradients=False``. Without a loss nothing happens at the
    end: seed gradients and call ``grad()``. ``grad_check=[x, y]`` compares with differences of the loss, which runs the calls again.

    Within a launch, the compiler refuses what would be wrong; an element that one launch reads and a later one overwrites is the program's to avoid.
    """

    def __init__(self, loss=None, clear_gradients=True, validation=False, grad_check=None):
        self.loss = loss._impl if isinstance(loss, Tensor) else loss
        self.clear_gradients = clear_gradients
        self.validation = validation
        self.calls: list[tuple[Callable, tuple, dict | None]] = []
        self._sinks = Sinks()
        self.entered = False
        self.gradient_evaluated = False
        if grad_check is not None and not isinstance(grad_check, (list, tuple)):
            raise OctantsAssertionError("grad_check is a list of the fields or ndarrays whose gradients are compared")
        self._compared = [one._impl if isinstance(one, Tensor) else one for one in grad_check or ()]
        if self._compared and self.loss is None:
            raise OctantsAssertionError("grad_check compares with differences of the loss: the Tape has none")
        if validation and not _debug():
            warnings.warn(
                "validation=True checks kernels in debug mode: oc.init(debug=True)", UserWarning, stacklevel=2
            )

    def __enter__(self) -> Tape:
        host_only("Tape")
        if self.entered:
            raise AssertionError("a Tape can be entered only once")
        if self.loss is not None:
            _require_loss(self.loss)
        _watch(self)
        self.entered = True
        try:
            if self.clear_gradients:
                clear_all_gradients()
            if self.loss is not None:
                self.loss.fill(0)
        except BaseException:
            _unwatch()
            raise
        return self

    def __exit__(self, kind, value, traceback) -> None:
        if _watching.get(get_ident()) is self:
            _unwatch()
        if kind is None and self.loss is not None:
            self.grad()

    def _call(self, kernel: Kernel, args: tuple, kwargs: dict | None):
        result, record = kernel._record(args, kwargs, self._sinks)
        self.calls.append((kernel if record is None else _Recorded(kernel, record), args, kwargs))
        return result

    @property
    def kept_bytes(self) -> int:
        """How much memory the tape holds of what kernels overwrote."""
        return sum(called.record.bytes for called, _, _ in self.calls if isinstance(called, _Recorded))

    def grad(self) -> None:
        """Goes back through what was recorded. Called at the end of ``with`` if there is a loss."""
        if not self.entered:
            raise AssertionError("a Tape must be entered before its gradients are evaluated")
        if self.gradient_evaluated:
            raise AssertionError("the gradients of a Tape can be evaluated only once")
        self.gradient_evaluated = True
        if self.clear_gradients:
            self._clear_ndarrays()
        if self.loss is not None:
            self.loss.grad.fill(1)
        for called, args, kwargs in reversed(self.calls):
            called.grad(*args, **(kwargs or {}))  # type: ignore[attr-defined]
        if self._compared:
            self._compare()

    def _clear_ndarrays(self) -> None:
        """Sets the gradients of all ndarrays to zero that kernels were called with."""
        objects = (one for _, args, kwargs in self.calls for one in (*args, *(kwargs or {}).values()))
        for array in _ndarrays(objects):
            array.grad.fill(0)

    def _compare(self) -> None:
        for number, array in enumerate(self._compared):
            found = array.grad.to_numpy()
            expected = self._differences(array)
            import numpy

            if not numpy.allclose(found, expected, rtol=1e-2, atol=1e-3 * max(1.0, float(numpy.abs(expected).max()))):
                name = getattr(array, "name", "") or f"number {number} of grad_check"
                raise OctantsAssertionError(
                    f"the gradients of {name} are not the differences of the loss:\n{found}\nagainst\n{expected}"
                )

    def _differences(self, array):
        """Central differences of the loss. Runs the calls again, twice for each scalar."""
        import numpy

        before = array.to_numpy()
        found = numpy.zeros(before.shape, dtype=numpy.float64)
        step = 1e-6 if before.dtype == numpy.float64 else 1e-2
        for index in numpy.ndindex(before.shape):
            losses = []
            for sign in (1, -1):
                moved = before.copy()
                moved[index] += sign * step
                array.from_numpy(moved)
                losses.append((self._again(), float(moved[index])))
            (above, high), (below, low) = losses
            found[index] = (above - below) / (high - low)
        array.from_numpy(before)
        self._again()
        return found

    def _again(self) -> float:
        self.loss.fill(0)  # type: ignore[union-attr]
        for called, args, kwargs in self.calls:
            if isinstance(called, Kernel):
                called._launch(args, kwargs, False)
            else:
                called(*args, **(kwargs or {}))
        return self._loss_value()

    def _loss_value(self) -> float:
        return float(self.loss.to_numpy().reshape(()))  # type: ignore[union-attr]


class _Recorded:
    """A call of a kernel with what was kept of it, since the kernel overwrites what its derivative needs."""

    def __init__(self, kernel: Kernel, record: Record):
        self.kernel = kernel
        self.record = record

    def __call__(self, *args, **kwargs):
        return self.kernel(*args, **kwargs)

    def grad(self, *args, **kwargs):
        """Goes back."""
        return self.kernel._grad_of_record(self.record, args, kwargs or None)


class FwdMode:
    """Kernels that are called inside of ``with`` compute derivatives beside their values: from ``param.dual``, which is seeded, to the duals of all
    fields that they write.

    ``seed`` has a number for each element of ``param``: the direction of the derivative. A field without axes needs none.
    """

    def __init__(self, loss, param, seed=None, clear_gradients=True):
        unwrapped = [
            one._impl if isinstance(one, Tensor) else one for one in ([loss] if not isinstance(loss, list) else loss)
        ]
        self.loss = unwrapped
        self.param = param._impl if isinstance(param, Tensor) else param
        self.seed = seed
        self.clear_gradients = clear_gradients
        self.entered = False

    def __enter__(self) -> FwdMode:
        host_only("FwdMode")
        if self.entered:
            raise AssertionError("a FwdMode can be entered only once")
        if not isinstance(self.param, ScalarField) or not all(isinstance(one, ScalarField) for one in self.loss):
            raise AssertionError("loss and param of FwdMode are fields of scalars")
        for field in (self.param, *self.loss):
            if not field.has_dual():
                raise OctantsRuntimeError(
                    f"Duals of {field._description()} are not allocated, please set needs_dual=True or place its dual"
                )
        shape = self.param.shape
        count = math.prod(shape)
        if self.seed is None or len(self.seed) == 0:
            if count != 1:
                raise OctantsRuntimeError(
                    f"`seed` is not set for a param of shape {shape}: it has a number for each of the {count} elements"
                )
            self.seed = [1.0]
        if len(self.seed) != count:
            raise AssertionError(f"`seed` has {len(self.seed)} numbers, and param has {count} elements")
        _watch(self)
        self.entered = True
        try:
            if self.clear_gradients:
                clear_all_gradients("dual")
            import numpy

            self.param.dual.from_numpy(numpy.asarray(self.seed, dtype=numpy.float64).reshape(shape))  # type: ignore[union-attr]
        except BaseException:
            _unwatch()
            raise
        return self

    def __exit__(self, kind, value, traceback) -> None:
        if _watching.get(get_ident()) is self:
            _unwatch()
        if kind is None or self.param._is_live:
            self.param.dual.fill(0)  # type: ignore[union-attr]

    def _call(self, kernel: Kernel, args: tuple, kwargs: dict | None):
        return kernel._launch(args, kwargs, True)


# ---- helpers --------------------------------------------------------------------------------------------------------------


def value_and_grad(function, loss, inputs):
    """A function that calls another one in a ``Tape`` and gives the loss and numpy arrays with the gradients of the inputs.

    >>> step = oc.ad.value_and_grad(compute_loss, loss, [x, y])
    >>> value, (x_grad, y_grad) = step()
    """
    of = _with_gradients(inputs, "inputs")

    @functools.wraps(function)
    def run(*args, **kwargs):
        with Tape(loss) as tape:
            function(*args, **kwargs)
        return tape._loss_value(), [one.grad.to_numpy() for one in of]

    return run


def gradcheck(function, inputs, outputs, *, step=None, rtol=None, atol=None) -> bool:
    """Compares gradients of a function that calls kernels with central differences, for some weighted sum of the outputs.

    ``inputs`` and ``outputs`` are fields or ndarrays with gradients, or lists of these; they hold what they held before when it is over. Raises an
    ``AssertionError`` that shows both. Takes two calls for each scalar of the inputs.
    """
    import numpy

    host_only("gradcheck")
    of, results = _with_gradients(inputs, "inputs"), _with_gradients(outputs, "outputs")
    before = [(one, one.to_numpy()) for one in {id(one): one for one in (*of, *results)}.values()]
    single = any(values.dtype != numpy.float64 for _, values in before)
    step = step or (1e-2 if single else 1e-6)
    rtol, atol = rtol or (1e-2 if single else 1e-5), atol or (1e-3 if single else 1e-7)
    random = numpy.random.default_rng(0)
    weights = [random.uniform(0.5, 1.5, one.to_numpy().shape) for one in results]

    def restore():
        for one, values in before:
            one.from_numpy(values)

    def weighted(moved, values) -> float:
        restore()
        moved.from_numpy(values)
        function()
        return sum(float((one.to_numpy() * weight).sum()) for one, weight in zip(results, weights, strict=True))

    try:
        with Tape() as tape:
            function()
        tape._clear_ndarrays()
        for one in of:
            one.grad.fill(0)
        for one, weight in zip(results, weights, strict=True):
            one.grad.from_numpy(weight)
        tape.clear_gradients = False
        tape.grad()
        found = [one.grad.to_numpy() for one in of]
        for number, (one, gradients) in enumerate(zip(of, found, strict=True)):
            differences = numpy.zeros(gradients.shape)
            start = next(values for known, values in before if known is one)
            for index in numpy.ndindex(gradients.shape):
                high, low = start.copy(), start.copy()
                high[index] += step
                low[index] -= step
                change = float(high[index]) - float(low[index])
                differences[index] = (weighted(one, high) - weighted(one, low)) / change
            if not numpy.allclose(gradients, differences, rtol=rtol, atol=atol):
                name = getattr(one, "name", "") or f"number {number} of the inputs"
                raise OctantsAssertionError(
                    f"the gradients of {name} are not the differences of the outputs:\n{gradients}\nagainst\n{differences}"
                )
    finally:
        restore()
    return True


def _with_gradients(arrays, what: str) -> list:
    listed = arrays if isinstance(arrays, (list, tuple)) else [arrays]
    found = [one._impl if isinstance(one, Tensor) else one for one in listed]
    for one in found:
        if not isinstance(one, (ScalarField, MatrixField, Ndarray)) or not one.has_grad():  # type: ignore[union-attr]
            raise OctantsRuntimeError(f"{what} are fields or ndarrays with needs_grad=True, not {one!r}")
    return found


# ---- functions of the host in a Tape --------------------------------------------------------------------------------------


def no_grad(func):
    """Decorates a function whose calls of kernels a Tape does not record."""

    @functools.wraps(func)
    def decorated(*args, **kwargs):
        return _unrecorded(func, args, kwargs)

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

    def __init__(self, func: Callable):
        functools.update_wrapper(self, func)
        self._func = func
        self._backward: Callable | None = None

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        return _BoundReplaced(self, instance)

    def __call__(self, *args, **kwargs):
        watcher = _watching.get(get_ident())
        result = _unrecorded(self._func, args, kwargs)
        if isinstance(watcher, Tape):
            watcher.calls.append((self, args, kwargs))
        return result

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


def _unrecorded(func: Callable, args: tuple, kwargs: dict):
    """A call that a Tape does not see."""
    if not isinstance(_watching.get(get_ident()), Tape):
        return func(*args, **kwargs)
    tape = _unwatch()
    assert tape is not None
    try:
        return func(*args, **kwargs)
    finally:
        _watch(tape)


# ---- arguments ------------------------------------------------------------------------------------------------------------


def _debug() -> bool:
    from . import _session

    return bool(getattr(_session.cfg, "debug", False))


def _require_loss(loss) -> None:
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
    else:
        raise OctantsRuntimeError(
            f"the loss of a Tape is a 0-D field or an ndarray with only one element, not {type(loss).__name__}"
        )


def _ndarrays(objects, seen: set[int] | None = None) -> Iterator:
    """The ndarrays with gradients among arguments and their members."""
    seen = set() if seen is None else seen
    for one in objects:
        if isinstance(one, Tensor):
            one = one._impl
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, BufferView):
            one = one.get_ndarray()
        if isinstance(one, Ndarray):
            if one.grad is not None:  # type: ignore[attr-defined]
                yield one
        elif isinstance(one, (list, tuple)):
            yield from _ndarrays(one, seen)
        elif isinstance(one, dict):
            yield from _ndarrays(one.values(), seen)
        elif hasattr(type(one), "__dataclass_fields__") or hasattr(type(one), "__octants_template_primitives__"):
            yield from _ndarrays(vars(one).values(), seen)
