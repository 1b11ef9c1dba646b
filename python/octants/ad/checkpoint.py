"""Long rollouts in little memory: steps that overwrite their state, with derivatives."""

from __future__ import annotations

import math

from .._fields.making import allocate_like
from .._fields.matrix import MatrixField
from .._fields.scalar import ScalarField
from .._ndarrays import _made
from .._octants import Kernel, Ndarray, host_only
from ..exceptions import OctantsRuntimeError
from .arrays import numbers_of, set_all, unwrapped
from .tape import Tape, current_tape, unwatch, watch, watchers

#: How far a state that is computed again may be from the first one, in parts of its size. Sums in another order differ by 1e-7 at first, and a hundred steps that
#: do not forget it may make 1e-3 of it; what is left out of a state is seldom less than a tenth. Chosen, not measured.
_SAME_STATE = 1e-2


def checkpoint(step, n: int, state, *, snapshots: int | None = None) -> None:
    """Calls ``step(0)`` … ``step(n - 1)``. In a ``Tape``, the way back keeps a few copies of the state and computes the rest again.

    ``state`` lists what goes from one step to the next: arrays that a step updates in place, or pairs ``(now, next)`` of arrays of which a step reads
    the first and writes the second, which is then copied to the first. All else that a step reads is the same in all steps, or is computed by the step
    itself: the way back is refused if the last steps, run again, come to another state. Steps write with kernels: what the host would set to zero, a kernel sets
    to zero.

    ``snapshots`` is how many copies of the state are kept at most; about ``2 * sqrt(n)`` if nothing is said, with which each step runs two or three times
    forward. With fewer, steps run more often: with 1 about ``n / 2`` times.

    >>> with oc.ad.Tape(loss):
    ...     oc.ad.checkpoint(step, 10_000, [(x, x_next), (v, v_next)])
    ...     compute_loss()
    """
    host_only("checkpoint")
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise ValueError(f"checkpoint takes a number of steps, not {n!r}")
    if snapshots is not None and (isinstance(snapshots, bool) or not isinstance(snapshots, int) or snapshots < 1):
        raise ValueError(f"snapshots is how many copies of the state are kept, at least 1, not {snapshots!r}")
    rollout = _Rollout(step, n, _pairs(state), snapshots or max(1, 2 * math.isqrt(n)))
    tape = current_tape()
    if tape is None:
        for number in range(n):
            rollout.advance(number)
        return
    if len(watchers()) > 1:
        raise OctantsRuntimeError("checkpoint has no second derivatives: call the steps in the tape")
    if n:
        for now, _ in rollout.state:
            if not now.has_grad():
                raise OctantsRuntimeError(f"the state of checkpoint has gradients: {now!r} needs needs_grad=True")
        rollout.loss = tape.loss
        tape._record_whole(rollout, rollout.forward, (), {})


def _pairs(state) -> list[tuple]:
    """The arrays of a state, each with the one that is copied to it."""
    listed = state if isinstance(state, list) else [state]
    pairs = []
    for one in listed:
        if isinstance(one, tuple) and len(one) != 2:
            raise TypeError(
                f"a tuple in the state of checkpoint is a pair (now, next), and this one has {len(one)} members: put arrays into a list"
            )
        now, after = one if isinstance(one, tuple) else (one, None)
        now, after = unwrapped(now), unwrapped(after)
        for array in (now, after):
            if array is not None and not isinstance(array, (ScalarField, MatrixField, Ndarray)):
                raise TypeError(
                    f"the state of checkpoint is a list of fields or ndarrays, or of pairs of these, not {array!r}"
                )
        if now is after:
            raise TypeError(f"{now!r} is updated in place: list it by itself, not as a pair")
        if after is not None and (now.shape, now.dtype) != (after.shape, after.dtype):
            raise TypeError(f"{now!r} and {after!r} have other types or shapes: one is copied to the other")
        pairs.append((now, after))
    if not pairs:
        raise TypeError("the state of checkpoint is empty: it lists what goes from one step to the next")
    return pairs


class _Reached(BaseException):
    """A step has come to the call that it was to be run to."""


class _Replay:
    """Watches a step that runs again, up to a call."""

    def __init__(self, calls: int):
        self.calls = calls

    def _call(self, kernel, args: tuple, kwargs: dict | None):
        result = kernel._launch(args, kwargs, False)
        self.calls -= 1
        if not self.calls:
            raise _Reached
        return result


class _StepTape(Tape):
    """The calls of one step. Where one overwrites what the way back of an earlier one needs, the step runs again up to that one.

    Other steps have the same arrays: what the host writes in a step is no part of the way back.
    """

    _is_step = True

    def __init__(self, again):
        super().__init__(clear_gradients=False)
        self.again = again

    def _go_back(self, recorded) -> None:
        try:
            super()._go_back(recorded)
        except OctantsRuntimeError as error:
            if getattr(error, "code", None) != "OC1105" or not isinstance(recorded.called, Kernel):
                raise
            self._run_to(self.calls.index(recorded) + 1)
            recorded.entries = self._log.entries
            super()._go_back(recorded)

    def _run_to(self, calls: int) -> None:
        replay = _Replay(calls)
        watch(replay)  # type: ignore[arg-type]
        try:
            self.again()
        except _Reached:
            pass
        finally:
            unwatch(replay)  # type: ignore[arg-type]


class _Rollout:
    """Steps, and copies of the state before some of them."""

    def __init__(self, step, n: int, state: list[tuple], snapshots: int):
        self.step, self.n, self.state, self.snapshots = step, n, state, snapshots
        self.loss = None
        #: Steps whose state before is kept, ascending, with the copies.
        self.kept: list[tuple[int, list]] = []
        #: Copies that are free again.
        self.free: list[list] = []

    def __call__(self) -> None:
        """Runs all steps, for differences."""
        for number in range(self.n):
            self.advance(number)

    def advance(self, number: int) -> None:
        """One step forward."""
        self.step(number)
        for now, after in self.state:
            if after is not None:
                now.copy_from(after)
                if watchers() and now.has_dual():
                    now.dual.copy_from(after.dual)

    def keep(self, number: int) -> None:
        """Keeps the state, which is that before a step."""
        copies = self.free.pop() if self.free else [_like(now) for now, _ in self.state]
        for copy, (now, _) in zip(copies, self.state, strict=True):
            copy.copy_from(now)
        self.kept.append((number, copies))

    def forward(self) -> None:
        """All steps, for the first time."""
        self.keep(0)
        for number in range(self.run_to(0, self.n), self.n):
            self.advance(number)

    def run_to(self, here: int, end: int) -> int:
        """Goes on from the state before step ``here`` to that before the last step, keeping states on the way; gives where it is."""
        while end - here > 1:
            left = self.snapshots - len(self.kept)
            ahead = _next_snapshot(end - here, left)
            for number in range(here, here + ahead):
                self.advance(number)
            here += ahead
            if left > 0 and end - here > 1:
                self.keep(here)
        return here

    def grad(self) -> None:
        """All steps back. Arrays of the state hold what they held before when it is over."""
        last = [(now, _like(now)) for now, _ in self.state]
        for now, copy in last:
            copy.copy_from(now)
        loss = None if self.loss is None else float(numbers_of(self.loss).reshape(()))
        end = self.n
        while end:
            begin, copies = self.kept[-1]
            for copy, (now, _) in zip(copies, self.state, strict=True):
                now.copy_from(copy)
            self.run_to(begin, end)
            end -= 1
            self.go_back(end, last if end == self.n - 1 else None)
            while self.kept and self.kept[-1][0] >= max(end, 1):
                self.free.append(self.kept.pop()[1])
        for now, copy in last:
            now.copy_from(copy)
        if loss is not None:
            set_all(self.loss, loss)

    def go_back(self, number: int, reached: list[tuple] | None) -> None:
        """One step back, from the state before it. ``reached`` are copies of the state behind it, if they are known."""
        before = self.free.pop() if self.free else [_like(now) for now, _ in self.state]
        for copy, (now, _) in zip(before, self.state, strict=True):
            copy.copy_from(now)

        def again():
            for copy, (now, _) in zip(before, self.state, strict=True):
                now.copy_from(copy)
            self.step(number)

        with _StepTape(again) as tape:
            self.step(number)
        if reached is not None:
            self.require_reached(reached)
        for now, after in self.state:
            if after is not None:
                _add(after.grad, now.grad)
                now.grad.fill(0)
        tape.grad()
        self.free.append(before)

    def require_reached(self, reached: list[tuple]) -> None:
        """Refuses steps that come to another state when they run again. One look is enough: what is missing in the state holds now what it held at the end."""
        for number, ((now, after), (_, copy)) in enumerate(zip(self.state, reached, strict=True)):
            if not _is_close(numbers_of(now if after is None else after), numbers_of(copy)):
                for one, before in reached:
                    one.copy_from(before)
                name = getattr(now, "name", "") or f"number {number} of the state"
                raise OctantsRuntimeError(
                    f"the steps of a checkpoint have come to another state than before: {name} holds other numbers. Something that goes from one step to "
                    "the next is not in `state`, or a step reads what is not the same each time, such as random numbers or what the host changes"
                )


def _is_close(found, expected) -> bool:
    """Whether two arrays are alike, but for the order of sums."""
    import numpy

    found, expected = found.astype(numpy.float64), expected.astype(numpy.float64)
    same = (found == expected) | (numpy.isnan(found) & numpy.isnan(expected))
    apart = numpy.linalg.norm(found[~same] - expected[~same])
    size = numpy.linalg.norm(expected[~numpy.isnan(expected)])
    # What is zero but for rounding has no size.
    return bool(same.all() or apart <= _SAME_STATE * size + 1e-6 * math.sqrt(expected.size))


def _next_snapshot(steps: int, left: int) -> int:
    """After how many of the steps the next state is kept, so that all are gone back through with as few steps forward as can be.

    With ``s`` states kept, that before the first step among them, ``C(s + t, s)`` steps are gone back through with each run forward ``t`` times at most.
    """
    states, times = max(left, 0) + 1, 1
    while math.comb(states + times, states) < steps:
        times += 1
    return min(max(1, steps - math.comb(states - 1 + times, states - 1)), steps - 1)


def _like(array):
    """An array of the same type and shape, without gradients."""
    if isinstance(array, Ndarray):
        return _made(array.element_type, array.shape, array.layout)
    return allocate_like(array)


def _add(to, what) -> None:
    from .sums import add_arrays, add_fields

    (add_arrays if isinstance(to, Ndarray) else add_fields)(to, what)
