"""Tapes: which kernels were called, with what, and the way back through them."""

from __future__ import annotations

import sys
import warnings
from _thread import get_ident
from contextlib import contextmanager

from .._fields.builder import companions, materialise_root
from .._fields.field import user_line
from .._octants import Kernel, Sinks, StepCheck, WriteLog, host_only, refusal, tell_of_torch
from .._session import runtime
from ..exceptions import OctantsAssertionError, OctantsRuntimeError
from .arrays import (
    MembersThen,
    arrays_in,
    companion_owners,
    has_gradients,
    is_torch,
    name_of,
    numbers_of,
    require_loss,
    set_all,
    set_numbers,
    unwrapped,
    with_gradients,
)
from .looks import Looks

TYPE_CHECKING = False  # as `typing` says it, without its weight
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Protocol

    from .._octants import Record, Run
    from .bounded import BoundedMemory
    from .forward import FwdMode
    from .looks import Passed

    class Watcher(Protocol):
        """What sees the calls of kernels of a thread."""

        #: Whether copies of arrays are calls of kernels.
        _sees_copies: bool
        #: Whether functions of the host are taken as a whole, by ``_record_whole``.
        _takes_wholes: bool
        #: Whether kernels compute duals beside their values.
        _computes_duals: bool

        def _call(self, kernel: Kernel, args: tuple, kwargs: dict | None) -> Any: ...

        def _call_grad(self, kernel: Kernel, args: tuple, kwargs: dict | None) -> Any: ...

        def _host_reads(self, array: Any, method: str) -> None: ...

        def _host_writes(self, array: Any, method: str, zeros: bool, index: Any, entry: int | None) -> None: ...


#: What watches the calls of kernels, by the thread that makes them; the innermost comes last.
_watching: dict[int, list[Watcher]] = {}


def _call(kernel: Kernel, args: tuple, kwargs: dict | None, grad: bool = False):
    """A call of a kernel, or of its ``grad``, while something watches."""
    watchers = _watching.get(get_ident())
    if grad:
        return watchers[-1]._call_grad(kernel, args, kwargs) if watchers else kernel._launch_grad(args, kwargs, False)
    return watchers[-1]._call(kernel, args, kwargs) if watchers else kernel._launch(args, kwargs, False)


def watch(watcher: Watcher) -> None:
    """Hands it the calls of kernels of this thread, until ``unwatch``."""
    watchers = _watching.setdefault(get_ident(), [])
    watchers.append(watcher)
    runtime.call_hook = _call


def unwatch(watcher: Watcher) -> None:
    """Ends it."""
    watchers = _watching.get(get_ident(), [])
    if watcher in watchers:
        watchers.remove(watcher)
    if not watchers:
        _watching.pop(get_ident(), None)
    if not _watching:
        runtime.call_hook = None


def forget_watchers() -> None:
    """Ends all, of every thread: what they watched was the session that is over."""
    for watcher in [one for watchers in _watching.values() for one in watchers]:
        log = getattr(watcher, "_log", None)
        if log is not None:
            log.close()
    _watching.clear()
    runtime.call_hook = None


def watchers() -> list[Watcher]:
    """What watches this thread."""
    return list(_watching.get(get_ident(), ()))


def host_reads(array, method: str) -> None:
    """The host looks at an array or field, or at an element of it. Called while something watches."""
    for watcher in watchers():
        watcher._host_reads(array, method)


def host_writes(array, method: str, zeros: bool, index=None, entry: int | None = None) -> None:
    """The host writes an array or field, or an element or an entry of it, by a method; whether nothing but zeros. Called while something watches."""
    for watcher in watchers():
        watcher._host_writes(array, method, zeros, index, entry)


def current_tape() -> Tape | None:
    """The tape that records this thread's calls."""
    innermost = watchers()[-1:]
    return innermost[0] if innermost and isinstance(innermost[0], Tape) else None


def current_recorder() -> Any:
    """What takes functions of the host as a whole: the tape that records this thread's calls, or what runs a part of one again."""
    innermost = watchers()[-1:]
    return innermost[0] if innermost and innermost[0]._takes_wholes else None


def unrecorded(func: Callable, args: tuple, kwargs: dict):
    """A call that a Tape does not see."""
    recorder = current_recorder()
    if recorder is None:
        return func(*args, **kwargs)
    bounded = getattr(recorder, "_bounded", None)
    if bounded is not None:
        return bounded.leave_out(func, args, kwargs)
    unwatch(recorder)
    try:
        return func(*args, **kwargs)
    finally:
        watch(recorder)


def add_in_any_order(kernels: Iterable[Kernel]) -> bool:
    """Whether one of them adds up in an order that is left to chance. It reads the text of each: ask where results differ alone."""
    return any("atomic" in (kernel.dump("ir") or "") for kernel in kernels)


@contextmanager
def unseen(tape: Tape) -> Iterator[None]:
    """What is done inside is no part of a tape that watches this thread."""
    unwatch(tape)
    try:
        yield
    finally:
        watch(tape)


class Bystander:
    """Watches calls of kernels, and is not asked what the host does."""

    _sees_copies = _takes_wholes = _computes_duals = False
    _log: WriteLog | None = None

    def _call_grad(self, kernel: Kernel, args: tuple, kwargs: dict | None):
        return kernel._launch_grad(args, kwargs, False)

    def _host_reads(self, array, method: str) -> None:
        pass

    def _host_writes(self, array, method: str, zeros: bool, index, entry: int | None) -> None:
        pass


class Whole(Bystander):
    """Watches a function that a tape takes as a whole: notes which arrays its kernels are called with."""

    def __init__(self, tape: Tape, looks: bool):
        self.tape, self.forward = tape, tape._forward
        #: Whether what the host sees there of results is no part of the function's own derivative.
        self.looks = looks
        #: What sees the launches of a step of a checkpoint.
        self.step = tape._step
        self.arrays: dict[int, Any] = {}
        self.kernels: dict[int, Kernel] = {}
        #: A kernel that draws random numbers.
        self.random: str | None = None

    def _host_reads(self, array, method: str) -> None:
        if self.looks:
            self.tape._host_reads(array, method)

    def _call(self, kernel: Kernel, args: tuple, kwargs: dict | None):
        arrays = list(arrays_in((*args, *(kwargs or {}).values())))
        self.arrays.update((id(array), array) for array in arrays)
        self.kernels[id(kernel)] = kernel
        self.tape._save(arrays)
        if self.forward is not None:
            return self.forward._call(kernel, args, kwargs)
        result = kernel._launch(args, kwargs, False, self.step)
        if kernel._draws_random:
            self.random = kernel.__qualname__.rpartition(".")[2]
        return result

    def _call_grad(self, kernel: Kernel, args: tuple, kwargs: dict | None):
        if self.forward is not None:
            return self.forward._call_grad(kernel, args, kwargs)
        return super()._call_grad(kernel, args, kwargs)


class _ByHand(Bystander):
    """Watches a function that goes back for another one: it reads what that one saw, or what it has written itself."""

    #: Copies of arrays are calls of kernels, which read one.
    _sees_copies = True

    def __init__(self, tape: Tape, recorded: _Recorded):
        self.tape, self.recorded = tape, recorded
        self._own = self._log = WriteLog()

    def _call(self, kernel: Kernel, args: tuple, kwargs: dict | None):
        called = f"`{self.recorded.called.__name__}`, called at {self.recorded.line},"
        kernel._require_unchanged(args, kwargs, self.tape._log, self._own, self.recorded.entries, called)
        return kernel._launch(args, kwargs, self.tape._forward is not None, self.tape._step)

    def _call_grad(self, kernel: Kernel, args: tuple, kwargs: dict | None):
        called = f"`{self.recorded.called.__name__}`, called at {self.recorded.line},"
        kernel._require_unchanged(args, kwargs, self.tape._log, self._own, self.recorded.entries, called, True)
        return kernel._launch_grad(args, kwargs, self.tape._forward is not None)

    def _host_writes(self, array, method: str, zeros: bool, index, entry: int | None) -> None:
        if self.tape._forward is None:
            return
        # Zeros have no duals, and forward mode sets them to zero, too.
        if not zeros or index is not None:
            self._refuse_host(array, method)

    def _refuse_host(self, array, method: str) -> None:
        raise refusal(
            "OC1105",
            f"`{method}` of {name_of(array)} in the function that goes back for `{self.recorded.called.__name__}`: what the host computes has no second derivatives",
            "compute it in a kernel",
        )

    def _host_reads(self, array, method: str) -> None:
        if self.tape._forward is not None:
            self._refuse_host(array, method)
        writer = self.tape._log.writer_since(array, self.recorded.entries)
        if writer is not None and self._own.writer_since(array, 0) is None:
            raise refusal(
                "OC1105",
                f"the gradients of `{self.recorded.called.__name__}`, called at {self.recorded.line}, need what it saw of {name_of(array)}, which `{method}` reads, and {writer} "
                "has written there since",
                "write to another array or to another row of it, or keep what the function for the gradients needs",
            )

    def run(self) -> None:
        self._own.open()
        watch(self)
        assert self.recorded.members is not None
        try:
            with self.recorded.members:
                self.recorded.called.grad(*self.recorded.args, **(self.recorded.kwargs or {}))
        finally:
            unwatch(self)
            self._own.close()


def clear_all_gradients(gradient_type: str = "grad") -> None:
    """Sets the gradients of all fields to zero, or their duals: ``gradient_type="dual"``."""
    host_only("clear_all_gradients")
    if gradient_type not in ("grad", "dual"):
        raise ValueError(f'gradient_type is "grad" or "dual", not {gradient_type!r}')
    materialise_root()
    for field in list(companions):
        if field._companion_kind == gradient_type and field._is_live:
            field.fill(0)


class _Streams:
    """Streams of the way back. Its launches come one after the other, whichever streams they are in: what the program ordered the calls by, an event or a wait of
    the host, is not there on the way back."""

    def __init__(self):
        #: The stream of the last launch; none is the default one.
        self._last: Any = None

    def enter(self, stream) -> None:
        """The next launch is in this stream."""
        if stream is self._last:
            return
        from .._session.streams import create_event

        event = create_event()
        event.record(self._last)
        event.wait(stream)
        self._last = stream


class _Recorded:
    """A call, what was kept of it, and how much of the log was written when it was over."""

    __slots__ = (
        "args",
        "arrays",
        "called",
        "entries",
        "kernels",
        "kwargs",
        "line",
        "members",
        "random",
        "record",
        "run",
        "snapshot",
        "written",
    )

    def __init__(self, called, args: tuple, kwargs: dict | None, entries: int, record: Record | None = None):
        self.called, self.args, self.kwargs, self.entries = called, args, kwargs, entries
        self.record = record
        #: In bounded memory: what it takes to run the call again, and the numbers of arrays that it writes.
        self.run: Run | None = None
        self.written: tuple[int, ...] = ()
        self.snapshot: list[tuple[str, int]] | None = None
        #: Of a function of the host: the arrays that its kernels were called with, and fields with gradients that they have written.
        self.arrays: list = []
        #: Likewise the kernels that it called.
        self.kernels: dict[int, Kernel] = {}
        #: Likewise the numbers that its arguments held.
        self.members: MembersThen | None = None
        #: Likewise one of them that draws random numbers, and where the function was called.
        self.random: str | None = None
        self.line = ""


class Tape:
    """Records the calls of kernels inside of ``with``; at its end the derivatives of the loss go back through them.

    The loss is a field without axes, an ndarray or a tensor of torch's with one element, and has gradients; it is set to zero at the beginning,
    and so are all gradients of fields, and those of ndarrays and tensors that kernels are called with, unless ``clear_gradients=False``.
    Without a loss nothing happens at the end: seed gradients and call ``grad()``.

    A kernel that overwrites what its own derivative needs keeps it. What a later launch or the host writes over values that the way back needs is an error
    that names both. ``validation=True``, in debug mode, also compares the values themselves, which finds writes through other libraries' views.
    ``grad_check=[x, y]`` compares with differences of the loss, which runs the calls again.

    With ``memory="2GB"``, or a number of bytes, kernels may overwrite what the way back needs: the tape keeps copies of what is overwritten, as many as fit, and runs the calls
    between them again.
    """

    #: Whether copies of arrays are calls of kernels.
    _sees_copies = True
    #: Whether functions of the host are calls of their own.
    _takes_wholes = True
    _computes_duals = False
    #: What sees the launches of a step of a checkpoint.
    _step: StepCheck | None = None
    #: Whether what the host writes in the tape is no part of an earlier step, either: see ``checkpoint``.
    _is_step = False

    #: The copies of a tape in bounded memory.
    _bounded: BoundedMemory | None = None

    def __init__(self, loss=None, clear_gradients=True, validation=False, grad_check=None, *, memory=None):
        self.loss = unwrapped(loss)
        self.clear_gradients = clear_gradients
        self.validation = validation
        self.calls: list[_Recorded] = []
        self.entered = False
        self.gradient_evaluated = False
        self._failed = False
        #: Around the tape: kernels compute duals, too, and the way back those of gradients.
        self._forward: FwdMode | None = None
        self._log = WriteLog()
        self._sinks = Sinks()
        self._streams = _Streams()
        #: What the host has read of what recorded calls wrote, and where.
        self._host_read: tuple[str, str] | None = None
        #: Numbers that it has read, and launches that took them: whether results, and gradients that are no part of this tape.
        self._looks = Looks()
        self._passed: list[tuple[Passed, bool, Any]] = []
        #: Tensors of torch's that kernels took, with the number of in-place operations that torch has counted.
        self._tensors: dict[int, tuple] = {}
        if memory is not None:
            from .bounded import BoundedMemory, bytes_of

            self._bounded = BoundedMemory(self, bytes_of(memory))
            if validation:
                raise OctantsRuntimeError(
                    "a Tape takes memory= or validation=True, not both: calls that run again are compared anyway"
                )
        if grad_check is not None and not isinstance(grad_check, (list, tuple)):
            raise OctantsAssertionError("grad_check is a list of the fields or ndarrays whose gradients are compared")
        self._compared = with_gradients(list(grad_check or ()), "the members of grad_check")
        #: Values from before the tape, of arrays that it uses, if its calls run again.
        self._saving = bool(self._compared)
        self._saved: dict[int, tuple] = {}
        if self._compared and self.loss is None:
            raise OctantsAssertionError("grad_check compares with differences of the loss: the Tape has none")
        if validation and not _debug():
            warnings.warn(
                "validation=True checks kernels in debug mode: oc.init(debug=True)", UserWarning, stacklevel=2
            )
            self.validation = False

    def __enter__(self) -> Tape:
        host_only("Tape")
        if self.entered:
            raise AssertionError("a Tape can be entered only once")
        if self.loss is not None:
            require_loss(self.loss)
        self._save(list(companion_owners()))
        around = watchers()
        if any(isinstance(one, Tape) for one in around):
            raise OctantsRuntimeError("Tapes cannot be nested: another one is active in this thread")
        self._forward = next((one for one in around if one._computes_duals), None)  # type: ignore[assignment]
        if self._forward is not None and self._bounded is not None:
            raise OctantsRuntimeError("a Tape with memory= has no second derivatives: leave memory= out in a FwdMode")
        self.entered = True
        if self.clear_gradients:
            clear_all_gradients()
        if self.loss is not None:
            set_all(self.loss, 0)
        self._log.open()
        watch(self)
        return self

    def __exit__(self, kind, value, traceback) -> None:
        if self._bounded is not None and kind is None and self in watchers():
            self._bounded.close()
        unwatch(self)
        if kind is not None:
            self._failed = True
            self._log.close()
            self.calls.clear()
            if self._bounded is not None:
                self._bounded.clear()
        elif self.loss is not None:
            self.grad()

    def __del__(self):
        # Of one without a loss whose gradients nobody asked for.
        if hasattr(self, "_log"):
            self._log.close()

    # ---- what is called ----

    def _call(self, kernel: Kernel, args: tuple, kwargs: dict | None):
        self._note_tensors()
        self._save(arrays_in((*args, *(kwargs or {}).values())) if self._saving else ())
        if self._bounded is not None:
            return self._bounded.call(kernel, args, kwargs)
        before, record = self._log.record(True), None
        try:
            if self._forward is None:
                check = StepCheck() if self._step is None and self._looks else None
                result, record = kernel._record(args, kwargs, self._sinks, self.validation, check or self._step)
                if check is not None:
                    self._note_passed(check.taken)
            else:
                self._forward._clear_duals((*args, *(kwargs or {}).values()))
                result, record = kernel._record_duals(args, kwargs)
        finally:
            self._log.record(before)
        recorded = _Recorded(kernel, args, kwargs, self._log.entries, record)
        if record is not None and self.validation:
            recorded.snapshot = kernel._needed_values(record)
        self._remember_tensors(record.arrays if record is not None else ())
        self.calls.append(recorded)
        return result

    def _call_grad(self, kernel: Kernel, args: tuple, kwargs: dict | None):
        """Gradients that a program computes by hand have no derivatives in reverse mode: kernels of the tape that read them are refused."""
        if self._forward is not None:
            name = kernel.__qualname__.rpartition(".")[2]
            raise refusal(
                "OC1104",
                f"`{name}.grad` is called in a Tape inside of a FwdMode: its gradients would be constants for second derivatives",
                "call it in a function that oc.ad.grad_for decorates, or outside of the tape",
            )
        return kernel._launch_grad(args, kwargs, False, self._sinks)

    def _save(self, arrays: Iterable) -> None:
        """Keeps the values that arrays had before the tape used them, if the calls are to run again."""
        for array in arrays if self._saving else ():
            if id(array) not in self._saved:
                self._saved[id(array)] = array, numbers_of(array)

    def _restore(self) -> None:
        """Gives arrays the values of before the tape."""
        for array, numbers in self._saved.values():
            set_numbers(array, numbers)

    def _host_reads(self, array, method: str) -> None:
        """Notes that the host has seen what recorded calls wrote and has derivatives. A look at the loss is for the user's eyes."""
        if self._bounded is not None and self._bounded.is_left_out:
            return
        if (
            self._host_read is None
            and array is not self.loss
            and has_gradients(array)
            and self._log.has_recorded(array)
        ):
            self._host_read = name_of(array), user_line()

        if array is not self.loss and has_gradients(array) and watchers()[-1] is self:
            entries = self._log.entries
            with unseen(self):
                self._looks.note(array, entries)

    def _note_passed(self, taken: list) -> None:
        """A launch may have been given numbers that the host has read."""
        for passed in self._looks.passed(taken):
            grad = passed.array.grad
            self._passed.append(
                (passed, self._log.has_recorded(passed.array), None if self.clear_gradients else numbers_of(grad))
            )

    def _require_none_passed(self) -> None:
        """Refuses to leave out what would flow through the host, for arrays that have gradients of this tape."""
        for passed, is_result, before in self._passed:
            grad = numbers_of(passed.array.grad)
            if is_result or (grad.any() if before is None else (grad != before).any()):
                raise passed.refused(f"the gradients of {passed.name} would lack what goes through it")

    def _host_writes(self, array, method: str, zeros: bool, index, entry: int | None) -> None:
        """Refuses values that the host may have computed of what it has read: their derivatives would be lost. Zeros are computed of nothing."""
        if self._bounded is not None:
            self._bounded.host_writes(array, method, index)
            if self._bounded.is_left_out:
                return
        if self._host_read is None or zeros or not has_gradients(array):
            return
        read, line = self._host_read
        raise refusal(
            "OC1105",
            f"`{method}` sets {name_of(array)}, which has gradients, after the host has read in the same tape what kernels wrote to {read}, at {line}: "
            "what is computed of it by the host has no derivatives",
            "copy with copy_from or in a kernel; or read or write in a function that oc.ad.no_grad decorates, to take the values as constants",
        )

    def _note_tensors(self) -> None:
        """Tells the log of what torch has written to tensors since they were last seen."""
        for number, (tensor, version) in self._tensors.items():
            if tensor._version != version:
                tell_of_torch(tensor)
                if self._bounded is not None:
                    self._bounded.torch_writes(tensor)
                self._tensors[number] = tensor, tensor._version

    def _remember_tensors(self, arrays: Iterable) -> None:
        """Looks at torch's tensors among arrays from now on."""
        if "torch" in sys.modules:
            for array in arrays:
                if is_torch(array):
                    self._tensors.setdefault(id(array), (array, array._version))

    @property
    def kept_bytes(self) -> int:
        """How much memory the tape holds of what kernels overwrote."""
        held = 0 if self._bounded is None else self._bounded.live
        return held + sum(call.record.bytes for call in self.calls if call.record is not None)

    @property
    def most_kept_bytes(self) -> int:
        """In bounded memory: how much the tape has held at once of copies, and of what kernels overwrote."""
        return self.kept_bytes if self._bounded is None else self._bounded.most

    @property
    def calls_again(self) -> int:
        """In bounded memory: how many calls have run again, each time counted."""
        return 0 if self._bounded is None else self._bounded.again

    def _record_whole(self, called, func: Callable, args: tuple, kwargs: dict, *, looks: bool = False):
        """Calls a function whose derivative is ``called.grad``, and none of the kernels that it calls. With ``looks`` the host's own looks at results count."""
        if self._bounded is not None:
            raise refusal(
                "OC1105",
                f"`{getattr(called, '__name__', 'oc.ad.checkpoint')}` is called in a Tape with memory=, which runs kernels again, one by one, and not functions with gradients of their own",
                "call the kernels themselves, or leave memory= out",
            )
        self._save(arrays_in((*args, *kwargs.values())) if self._saving else ())
        whole = Whole(self, looks)
        unwatch(self)
        watch(whole)
        before, entries = self._log.record(True), self._log.entries
        try:
            result = func(*args, **kwargs)
        finally:
            self._log.record(before)
            unwatch(whole)
            watch(self)
        for array in arrays_in((*args, *kwargs.values())):
            whole.arrays[id(array)] = array
        for field in companion_owners():
            if self._log.writer_since(field, entries) is not None:
                whole.arrays[id(field)] = field
        recorded = _Recorded(called, args, kwargs, self._log.entries)
        # Behind the call: what goes back for it finds what it has left, such as a count of steps.
        recorded.members, recorded.kernels = MembersThen((*args, *kwargs.values())), whole.kernels
        recorded.arrays, recorded.random, recorded.line = list(whole.arrays.values()), whole.random, user_line()
        self._remember_tensors(recorded.arrays)
        self.calls.append(recorded)
        return result

    # ---- the way back ----

    def grad(self) -> None:
        """Goes back through what was recorded. Called at the end of ``with`` if there is a loss."""
        if not self.entered:
            raise AssertionError("a Tape must be entered before its gradients are evaluated")
        if self.gradient_evaluated:
            raise AssertionError("the gradients of a Tape can be evaluated only once")
        if self._failed:
            raise AssertionError("a Tape whose block ended with an exception has no gradients")
        if self in watchers():
            raise AssertionError("the gradients of a Tape are evaluated when its block is over")
        self.gradient_evaluated = True
        self._note_tensors()
        self._log.close()
        if self.clear_gradients:
            self._clear_arrays()
        if self.loss is not None:
            _seed(self.loss)
        if self._bounded is not None:
            self._bounded.go_back()
        else:
            for recorded in reversed(self.calls):
                self._enter_stream(recorded)
                self._go_back(recorded)
        self._streams.enter(None)
        self._require_none_passed()
        if self._compared:
            self._compare()

    def _enter_stream(self, recorded: _Recorded) -> None:
        """The next launch is that of a call, or its derivative."""
        is_launched = recorded.record is not None or recorded.run is not None
        self._streams.enter((recorded.kwargs or {}).get("qd_stream") if is_launched else None)

    def _go_back(self, recorded: _Recorded) -> None:
        called, args, kwargs = recorded.called, recorded.args, recorded.kwargs
        if not isinstance(called, Kernel):
            if not self._is_step:
                self._require_unwritten(recorded)
            if called._reads_arrays:
                _ByHand(self, recorded).run()
            else:
                called.grad(*args, **(kwargs or {}))
            return
        if recorded.record is None:  # nothing of the call has derivatives
            return
        wrong = None if recorded.snapshot is None else self._wrong_value(recorded)
        derivatives = 0 if self._is_step else recorded.entries
        # What overwrites something that is needed is undone by copies.
        values = recorded.entries if self._bounded is None or self._bounded.first is None else self._log.entries
        called._replay_grad(recorded.record, kwargs, log=self._log, values=values, derivatives=derivatives)
        if wrong is not None:
            # What the log knows of was refused before.
            name = called.__qualname__.rpartition(".")[2]
            raise OctantsAssertionError(
                f"validation: the gradients of `{name}` need what `{wrong}` held when it ran, "
                "and it holds something else now. Not a kernel or a method of Octants wrote it: another library did, "
                "through a view of its memory"
            )

    def _require_unwritten(self, recorded: _Recorded) -> None:
        """Refuses to hand gradients of what the host has written to a function that wrote something else there."""
        for array in recorded.arrays:
            writer = None if array.grad is None else self._log.host_writer_since(array, recorded.entries)
            if writer is not None:
                name = getattr(recorded.called, "__name__", "checkpoint")
                raise refusal(
                    "OC1105",
                    f"the gradients of `{name}` need those of {array!r}, and {writer} has written there since",
                    "write it by a kernel that the tape records, so that gradients of what was there before are kept apart",
                )

    def _wrong_value(self, recorded: _Recorded) -> str | None:
        """What holds other values than the kernel saw."""
        now = dict(recorded.called._needed_values(recorded.record))
        return next((name for name, value in recorded.snapshot or () if now.get(name) != value), None)

    def _clear_arrays(self) -> None:
        """Sets the gradients of all ndarrays and tensors to zero that kernels were called with."""
        arrays = {id(one): one for call in self.calls for one in call.arrays}
        arrays |= {id(one): one for call in self.calls if call.record is not None for one in call.record.arrays}
        arrays |= {id(one): one for call in self.calls if call.run is not None for one in call.run.arrays}
        for array in arrays.values():
            if array.grad is not None:
                set_all(array.grad, 0)
                if self._forward is not None and not is_torch(array):
                    array.grad._second_derivatives().fill(0)
        if self._forward is not None:
            for field in list(companions):
                if field._is_second and field._is_live:
                    field.fill(0)
            if any(not isinstance(call.called, Kernel) for call in self.calls):
                # What goes back by hand may write gradients that no other kernel's way back has asked duals of.
                for field in companion_owners():
                    if field.has_grad() and field.has_dual():
                        for part in field._leaf_fields():
                            part._companion("grad")._second_derivatives()

    # ---- differences ----

    def _compare(self) -> None:
        import numpy

        after = [(array, numbers_of(array)) for array, _ in self._saved.values()]
        value = self._loss_value()
        again = self._again()
        if not numpy.isclose(again, value, rtol=1e-5, atol=1e-7, equal_nan=True):
            raise OctantsAssertionError(
                f"grad_check runs the calls of the Tape again, and they come to another loss, {again} instead of {value}: the host has written arrays or changed "
                "values between them, or they draw random numbers. oc.ad.gradcheck calls a function of yours again instead"
            )
        try:
            self._compare_each()
        finally:
            for array, numbers in after:
                set_numbers(array, numbers)

    def _compare_each(self) -> None:
        import numpy

        for number, array in enumerate(self._compared):
            found = numbers_of(array.grad)
            expected = self._differences(array)
            if not numpy.allclose(found, expected, rtol=1e-2, atol=1e-3 * max(1.0, float(numpy.abs(expected).max()))):
                name = getattr(array, "name", "") or f"number {number} of grad_check"
                raise OctantsAssertionError(
                    f"the gradients of {name} are not the differences of the loss:\n{found}\nagainst\n{expected}"
                )

    def _differences(self, array):
        """Central differences of the loss. Runs the calls again, twice for each scalar."""
        import numpy

        before = self._saved[id(array)][1] if id(array) in self._saved else array.to_numpy()
        found = numpy.zeros(before.shape, dtype=numpy.float64)
        step = 1e-6 if before.dtype == numpy.float64 else 1e-2
        for index in numpy.ndindex(before.shape):
            losses = []
            for sign in (1, -1):
                moved = before.copy()
                moved[index] += sign * step
                losses.append((self._again(array, moved), float(moved[index])))
            (above, high), (below, low) = losses
            found[index] = (above - below) / (high - low)
        return found

    def _again(self, array=None, numbers=None) -> float:
        """The loss of the same calls, from the values of before, but for an array."""
        self._restore()
        if array is not None:
            set_numbers(array, numbers)
        set_all(self.loss, 0)
        for recorded in self.calls:
            if isinstance(recorded.called, Kernel):
                recorded.called._launch(recorded.args, recorded.kwargs, False)
            else:
                recorded.called(*recorded.args, **(recorded.kwargs or {}))
        return self._loss_value()

    def _loss_value(self) -> float:
        return float(numbers_of(self.loss).reshape(()))


def _seed(loss) -> None:
    if is_torch(loss) and loss.grad is None:
        from .._arrays.torch_tensors import gradients_of

        gradients_of(loss)
    set_all(loss.grad, 1)


def _debug() -> bool:
    from .. import _session

    return bool(getattr(_session.cfg, "debug", False))
