"""Functions that call kernels: their gradients as numpy arrays, and against differences."""

from __future__ import annotations

import functools

from .._octants import host_only
from ..exceptions import OctantsAssertionError
from .arrays import require_loss, unwrapped, with_gradients
from .tape import Tape


def value_and_grad(function, loss, inputs):
    """A function that calls another one in a ``Tape`` and gives the loss and numpy arrays with the gradients of the inputs.

    >>> step = oc.ad.value_and_grad(compute_loss, loss, [x, y])
    >>> value, (x_grad, y_grad) = step()
    """
    of = with_gradients(inputs, "inputs")
    require_loss(unwrapped(loss))

    @functools.wraps(function)
    def run(*args, **kwargs):
        with Tape(loss) as tape:
            function(*args, **kwargs)
        return tape._loss_value(), [one.grad.to_numpy() for one in of]

    return run


def gradcheck(function, inputs, outputs, *, step=None, rtol=None, atol=None) -> bool:
    """Compares gradients of a function that calls kernels with central differences, for some weighted sum of the outputs.

    ``inputs`` and ``outputs`` are fields or ndarrays with gradients, or lists of these. They and all other ndarrays and fields with gradients that the function uses hold what they
    held before when it is over, and each time it is called. Raises an
    ``AssertionError`` that shows both. Takes two calls for each scalar of the inputs.
    """
    import numpy

    host_only("gradcheck")
    of, results = with_gradients(inputs, "inputs"), with_gradients(outputs, "outputs")
    before = [(one, one.to_numpy()) for one in {id(one): one for one in (*of, *results)}.values()]
    single = any(values.dtype != numpy.float64 for _, values in before)
    step = (1e-2 if single else 1e-6) if step is None else step
    rtol = (1e-2 if single else 1e-5) if rtol is None else rtol
    atol = (1e-3 if single else 1e-7) if atol is None else atol
    random = numpy.random.default_rng(0)
    weights = [random.uniform(0.5, 1.5, one.to_numpy().shape) for one in results]

    tape = Tape()
    # What the function keeps in other arrays is as before each time.
    tape._saving = True

    def restore():
        tape._restore()
        for one, values in before:
            one.from_numpy(values)

    def weighted(moved, values) -> float:
        restore()
        moved.from_numpy(values)
        function()
        return sum(float((one.to_numpy() * weight).sum()) for one, weight in zip(results, weights, strict=True))

    try:
        with tape:
            function()
        tape._clear_arrays()
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
