"""Forward mode: derivatives beside the values, in one direction; and those of gradients."""

from __future__ import annotations

import math

from .._fields.field import Field, user_line
from .._fields.scalar import ScalarField
from .._octants import Kernel, Ndarray, StepCheck, WriteLog, host_only, refusal
from ..exceptions import OctantsRuntimeError
from .arrays import arrays_in, unwrapped, with_gradients
from .looks import Looks
from .tape import Tape, clear_all_gradients, unwatch, watch, watchers


class FwdMode:
    """Kernels that are called inside of ``with`` compute derivatives beside their values: from ``param.dual``, which is seeded, to the duals of all
    fields and ndarrays that they write.

    ``param`` and ``loss`` are fields or ndarrays of scalars, with ``needs_dual=True``; ``loss`` may be a list. ``seed`` has a number for each element of
    ``param``: the direction of the derivative. An array of one element needs none.
    """

    #: Whether copies of arrays are calls of kernels.
    _sees_copies = True
    _takes_wholes = False
    _computes_duals = True

    def __init__(self, loss, param, seed=None, clear_gradients=True):
        self.loss = [unwrapped(one) for one in (loss if isinstance(loss, (list, tuple)) else [loss])]
        self.param = unwrapped(param)
        self.seed = seed
        self.clear_gradients = clear_gradients
        self.entered = False
        #: Arrays whose duals were cleared, with the parameters. They stay, so that no other has the same address.
        self._cleared: dict[int, object] = {}
        #: What with duals the host has read, and where.
        self._host_read: tuple[str, str] | None = None
        #: Numbers that it has read.
        self._looks = Looks()
        #: Open so that the host tells what it writes.
        self._log = WriteLog()

    def __enter__(self) -> FwdMode:
        host_only("FwdMode")
        if self.entered:
            raise AssertionError("a FwdMode can be entered only once")
        if not _is_scalar_array(self.param) or not all(_is_scalar_array(one) for one in self.loss):
            raise AssertionError("loss and param of FwdMode are fields or ndarrays of scalars")
        for one in (self.param, *self.loss):
            _require_dual(one)
        shape = self.param.shape
        count = math.prod(shape)
        if self.seed is not None and not hasattr(self.seed, "__len__"):
            raise TypeError(f"`seed` is a list with a number for each of the {count} elements, not {self.seed!r}")
        if self.seed is None or len(self.seed) == 0:
            if count != 1:
                raise OctantsRuntimeError(
                    f"`seed` is not set for a param of shape {shape}: it has a number for each of the {count} elements"
                )
            self.seed = [1.0]
        if len(self.seed) != count:
            raise AssertionError(f"`seed` has {len(self.seed)} numbers, and param has {count} elements")
        import numpy

        self._begin({self.param: numpy.asarray(self.seed, dtype=numpy.float64).reshape(shape)})
        return self

    def _begin(self, seeds: dict) -> None:
        """Sets the duals of some arrays, and watches."""
        if watchers():
            raise OctantsRuntimeError("FwdMode cannot stand inside a Tape or another FwdMode of the same thread")
        self.entered = True
        if self.clear_gradients:
            clear_all_gradients("dual")
            for one in self.loss:
                one.dual.fill(0)  # type: ignore[union-attr]
                self._cleared[id(one)] = one
        for array, seed in seeds.items():
            array.dual.from_numpy(seed)
            self._cleared[id(array)] = array
        self._seeded = list(seeds)
        self._log.open()
        watch(self)

    def __exit__(self, kind, value, traceback) -> None:
        unwatch(self)
        self._log.close()
        # One that is a result, too, keeps what was computed.
        for array in (one for one in self._seeded if all(one is not result for result in self.loss)):
            if kind is None or not isinstance(array, Field) or array._is_live:
                array.dual.fill(0)  # type: ignore[union-attr]

    def _host_reads(self, array, method: str) -> None:
        """Notes that the host has seen what kernels wrote and has tangents."""
        has_dual = hasattr(array, "has_dual") and array.has_dual()
        if self._host_read is None and has_dual and self._log.has_recorded(array):
            self._host_read = getattr(array, "name", "") or repr(array), user_line()
        is_seeded = any(array is one for one in self._seeded)
        if has_dual and (is_seeded or self._log.has_recorded(array)) and watchers()[-1] is self:
            unwatch(self)
            try:
                self._looks.note(array, self._log.entries)
            finally:
                watch(self)

    def _host_writes(self, array, method: str, zeros: bool, index, entry: int | None) -> None:
        """What the host writes are constants: their duals are zero. Seeds are set before. What it may have computed of tangents is refused."""
        if not array.has_dual():
            return
        if self._host_read is not None and not zeros:
            read, line = self._host_read
            raise refusal(
                "OC1105",
                f"`{method}` sets {getattr(array, 'name', '') or repr(array)}, which has duals, after the host has read inside of the same FwdMode what was written to {read}, at {line}: "
                "what is computed of it by the host has no tangents",
                "copy with copy_from or in a kernel, or set it before",
            )
        if index is None:
            array.dual.fill(0)
        elif entry is not None:
            array.dual._set_entry(index, entry, 0)
        else:
            element = array.dual[index]
            array.dual[index] = 0 if isinstance(element, (int, float)) else element * 0

    def _call(self, kernel: Kernel, args: tuple, kwargs: dict | None):
        self._clear_duals((*args, *(kwargs or {}).values()))
        before, step = self._log.record(True), StepCheck() if self._looks else None
        try:
            result = kernel._launch(args, kwargs, True, step)
        finally:
            self._log.record(before)
        for passed in self._looks.passed(step.taken) if step is not None else ():
            raise passed.refused("the tangents would lack what goes through it")
        return result

    def _call_grad(self, kernel: Kernel, args: tuple, kwargs: dict | None):
        """Computes the duals of gradients beside them."""
        self._clear_duals((*args, *(kwargs or {}).values()))
        before = self._log.record(True)
        try:
            return kernel._launch_grad(args, kwargs, True)
        finally:
            self._log.record(before)

    def _clear_duals(self, objects: tuple) -> None:
        """Duals of ndarrays that are seen for the first time, and of their gradients."""
        for one in arrays_in(objects) if self.clear_gradients else ():
            for array in (one, one.grad) if isinstance(one, Ndarray) else ():  # type: ignore[attr-defined]
                if array is not None and id(array) not in self._cleared:
                    # Those that are made later hold what kernels of this mode write there.
                    self._cleared[id(array)] = array
                    if array.dual is not None:  # type: ignore[attr-defined]
                        array.dual.fill(0)  # type: ignore[attr-defined]


def hessian_vector_product(function, loss, inputs, vectors):
    """The loss, its gradients by the inputs, and the products of its second derivatives with a vector for each input, by forward mode over reverse mode.

    ``function`` calls kernels. ``inputs`` are fields or ndarrays, or one; ``vectors`` are numpy arrays of their shapes. These, the loss and all
    that kernels write between them need both ``needs_grad=True`` and ``needs_dual=True``.

    >>> value, gradients, products = oc.ad.hessian_vector_product(compute_loss, loss, x, direction)
    """
    import numpy

    host_only("hessian_vector_product")
    single = not isinstance(inputs, (list, tuple))
    of = with_gradients(inputs, "inputs")
    directions = [vectors] if single else list(vectors)
    if len(directions) != len(of):
        raise ValueError(f"there are {len(of)} inputs and {len(directions)} vectors: each input has one")
    seeds = {}
    for one, direction in zip(of, directions, strict=True):
        _require_dual(one)
        seed, shape = numpy.asarray(direction, dtype=numpy.float64), one.to_numpy().shape
        if seed.shape != shape:
            raise ValueError(f"a vector of shape {seed.shape} belongs to an input of shape {shape}")
        seeds[one] = seed
    mode = FwdMode([], of[0])
    tape = Tape(loss)
    mode._begin(seeds)
    try:
        with tape:
            function()
    finally:
        mode.__exit__(None, None, None)
    gradients = [one.grad.to_numpy() for one in of]
    products = [_second_derivatives(one) for one in of]
    return tape._loss_value(), gradients[0] if single else gradients, products[0] if single else products


def _second_derivatives(array):
    """The duals of an array's gradients, as a numpy array."""
    if not isinstance(array, Field):
        return array.grad._second_derivatives().to_numpy()
    import numpy

    parts = [part._companion("grad")._second_derivatives().to_numpy() for part in array._leaf_fields()]  # type: ignore[union-attr]
    return parts[0] if len(parts) == 1 else numpy.stack(parts, axis=-1).reshape(array.to_numpy().shape)


def _is_scalar_array(one) -> bool:
    return isinstance(one, ScalarField) or (isinstance(one, Ndarray) and not one.element_shape)


def _require_dual(one) -> None:
    if not one.has_dual():
        name = one._description() if isinstance(one, Field) else repr(one)
        raise OctantsRuntimeError(f"Duals of {name} are not allocated, please set needs_dual=True or place its dual")
