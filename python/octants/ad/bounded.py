"""Tapes in bounded memory: copies of arrays before some of the calls, and calls that run again on the way back.

Owns which arrays are copied, before which calls, and how the way back gets from one call to the one before. Knows nothing of derivatives: the tape computes these, once memory is as the call
left it.

Law: **until a call overwrites what the way back needs, a tape in bounded memory is a tape like any other.** From that call on, all calls are kept to run again. An array is copied only if
something overwrites what was read or written there since: what is written once is right in memory for every call that runs again. (`Overwrites` tells.)
"""

from __future__ import annotations

import re
from bisect import bisect_right
from contextlib import contextmanager

from .._fields.matrix import MatrixField
from .._fields.scalar import ScalarField
from .._octants import Ndarray, Overwrites, StepCheck, WriteLog, refusal
from ..exceptions import OctantsRuntimeError
from .arrays import is_torch, numbers_of, own_fields, set_all, unwrapped
from .copies import are_alike, like, next_copy, put

TYPE_CHECKING = False  # as `typing` says it, without its weight
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from .tape import Tape

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}  # fmt: skip

#: How many copies of the state are kept at most while the calls run first. With half as many, 10,000 calls have 78 calls between two copies, which fit at once on the way back; more take
#: as long to make as they save. Chosen, not measured.
_MOST_COPIES = 256

#: How many elements of one array the host writes between two calls before all of the array is kept in place of them. Chosen, not measured.
_MOST_ELEMENTS = 64


def bytes_of(memory) -> int:
    """A number of bytes, or a text such as ``"2GB"``."""
    if isinstance(memory, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", memory)
        unit = found and _UNITS.get(found[2].upper())
        if not found or unit is None:
            raise ValueError(
                f'memory is a number of bytes, or a text such as "2GB", "512MB" or "1.5GiB", not {memory!r}'
            )
        memory = int(float(found[1]) * unit)
    if isinstance(memory, bool) or not isinstance(memory, int):
        raise TypeError(f'memory is a number of bytes, or a text such as "2GB", not {memory!r}')
    if memory <= 0:
        raise ValueError(f"memory is more than nothing, not {memory} bytes")
    return memory


class _Copy:
    """What an array held before a call, shared by all calls before which it held the same."""

    __slots__ = ("array", "number", "users", "version")

    def __init__(self, array, number: int, version: int):
        self.array, self.number, self.version, self.users = array, number, version, 1


class HostWrite:
    """What the host has written between two calls, to be written once more."""

    #: For those who list what a tape has called.
    __name__ = "what the host writes"
    _reads_arrays = False

    def __init__(self, writes: list[tuple]):
        #: Arrays, each with an index (None: all of it) and a number, or a copy.
        self.writes = writes

    def __call__(self) -> None:
        for array, index, value in self.writes:
            if isinstance(value, _Copy):
                put(array, value.array)
            elif index is None:
                set_all(array, value)
            else:
                array[index] = value

    def grad(self) -> None:
        """What the host writes has no derivatives."""


class BoundedMemory:
    """The copies of a tape, and the way back by them. Calls are counted from the first one of the tape on; what holds before a call is at its place."""

    def __init__(self, tape: Tape, limit: int):
        self.tape, self.limit = tape, limit
        self.overwrites = Overwrites(self._begin, self._write)
        #: The first call that runs again.
        self.first: int | None = None
        #: Arrays that calls from then on write, and the number of each by its id.
        self.arrays: list[Any] = []
        self.numbers: dict[int, int] = {}
        self.known = WriteLog()
        #: For each of them the places behind calls that wrote it, ascending; and how many bytes it has.
        self.versions: list[list[int]] = []
        self.sizes: list[int] = []
        #: Of arrays that lose something: what they held before that, which is right for all places up to there; and that place.
        self.start: dict[int, _Copy] = {}
        self.joined: dict[int, int] = {}
        #: Places where copies are kept, by the numbers of arrays. Those that are missing there are as at the start.
        self.kept: dict[int, dict[int, _Copy]] = {}
        #: Copies, by array and version.
        self.copies: dict[tuple[int, int], _Copy] = {}
        #: Arrays that are free to be copies again.
        self.free: dict[int, list] = {}
        #: Copies are kept before every so many calls.
        self.every = 1
        #: Bytes of copies, and of those among them that stay until the end.
        self.live = self.staying = 0
        self.most = 0
        #: Bytes of what calls from before the first one keep, and the most that one call keeps.
        self.recorded = self.largest = 0
        #: Calls that have run again.
        self.again = 0
        #: Which version each array holds, on the way back.
        self.holds: dict[int, int] = {}
        #: What the host has written since the last call: arrays, and indices, or None for all of one.
        self.pending: dict[int, list | None] = {}
        #: What the call that is about to be writes.
        self.written: list[int] | None = None
        #: A call that has failed after it may have written something.
        self.failed: str | None = None
        #: Whether what is called now has no derivatives.
        self.is_left_out = False
        self.has_streams = False
        #: What the log had when the block was over.
        self.entries: int | None = None
        self.end: dict[int, _Copy] = {}

    # ---- what is called ----

    def call(self, kernel, args: tuple, kwargs: dict | None):
        """A call of a kernel in the tape."""
        from .tape import _Recorded

        tape = self.tape
        self.settle()
        place = len(tape.calls)
        self.has_streams |= kwargs is not None and kwargs.get("qd_stream") is not None
        if self.first is not None:
            self._keep_now_and_then(place)
        self.written = None
        sinks = None if self.is_left_out else tape._sinks
        before = tape._log.record(not self.is_left_out)
        try:
            check = StepCheck() if tape._looks and not self.is_left_out else None
            result, record, run = kernel._run(args, kwargs, sinks, self.overwrites, check)
            if check is not None:
                tape._note_passed(check.taken)
        except BaseException:
            if self.written is not None:
                self.failed = kernel.__name__
            raise
        finally:
            tape._log.record(before)
        if run is None and self.is_left_out:
            return result
        recorded = _Recorded(kernel, args, kwargs, tape._log.entries, record if run is None else None)
        size = 0 if record is None else record.bytes
        if run is None:
            self.recorded += size
            self.most = max(self.most, self.recorded)
            tape._remember_tensors(record.arrays if record is not None else ())
        else:
            recorded.run, recorded.written = run, tuple(self.written or ())
            self.largest = max(self.largest, size)
            self.most = max(self.most, self._allocated() + size)
            self._note(self.written or (), place + 1)
            tape._remember_tensors(run.arrays)
        tape.calls.append(recorded)
        if run is None and self.recorded > self.limit // 2:
            self._begin()
        return result

    def _begin(self) -> None:
        """From here on calls are kept to run again."""
        if self.first is None:
            self.first = len(self.tape.calls)
            self.kept[self.first] = {}
            self.overwrites.run()

    def _write(self, written: list[tuple], lost: list[tuple]) -> None:
        """A launch is about to write arrays; some of them lose what somebody has used."""
        self.written = [self._number(one, name) for name, array in written for one in _parts(array)]
        for name, array in lost:
            for one in _parts(array):
                self._join(self._number(one, name))

    def host_writes(self, array, method: str, index) -> None:
        """The host is about to write an array, or an element of it."""
        array = unwrapped(array)
        if getattr(array, "_companion_kind", None) is not None:
            # Derivatives are written before the way back, and not again.
            return
        if self.first is None:
            if not self.overwrites.is_used(array):
                return
            self._begin()
        for one in _parts(array):
            if not self.overwrites.is_used(one):
                # Whatever runs again finds this there.
                self.overwrites.note(one)
                continue
            number = self._number(one, f"{method}")
            self._join(number)
            indices = self.pending.setdefault(number, [])
            if indices is None:
                continue
            if index is None or len(indices) >= _MOST_ELEMENTS:
                self.pending[number] = None
            elif index not in indices:
                indices.append(index)

    def leave_out(self, func, args: tuple, kwargs: dict):
        """Calls a function whose calls have no derivatives."""
        before, self.is_left_out = self.is_left_out, True
        try:
            return func(*args, **kwargs)
        finally:
            self.is_left_out = before

    def torch_writes(self, tensor) -> None:
        """Torch has written a tensor."""
        if self.overwrites.is_used(tensor):
            raise refusal(
                "OC1105",
                "torch has written to a tensor in place that kernels of a Tape with memory= have used: nobody keeps what it held before",
                "copy in a kernel, or make another tensor",
            )

    def settle(self) -> None:
        """Keeps what the host has written since the last call."""
        from .tape import _Recorded

        if not self.pending:
            return
        writes, pending, place = [], dict(self.pending), len(self.tape.calls)
        self.pending.clear()
        with self.unseen():
            for number, indices in pending.items():
                array = self.arrays[number]
                self._note((number,), place + 1)
                if indices is not None:
                    writes += [(array, index, _value(array[index])) for index in indices]
                    continue
                value = _same_everywhere(array)
                if value is None:
                    self._make_room(self.sizes[number])
                    value = self._taken(number, place + 1)
                    self.staying += self.sizes[number]
                writes.append((array, None, value))
        recorded = _Recorded(HostWrite(writes), (), None, self.tape._log.entries)
        recorded.written = tuple(pending)
        self.tape.calls.append(recorded)

    @contextmanager
    def unseen(self) -> Iterator[None]:
        """What is done inside is no part of the tape."""
        from .tape import unseen

        log = self.tape._log
        with unseen(self.tape):
            log.close()
            self._wait()
            try:
                yield
            finally:
                self._wait()
                log.open()

    def _wait(self) -> None:
        if self.has_streams:
            from .._session import sync

            sync(all=True)

    # ---- arrays ----

    def _number(self, array, name: str) -> int:
        """The number of an array that is written."""
        number = self.numbers.get(id(array))
        if number is not None:
            return number
        if not _can_be_copied(array):
            shown = (
                getattr(array, "name", "")
                if getattr(array, "_is_sparse", False)
                else getattr(array, "name", "") or name
            )
            what = ", ".join(one for one in (shown and f"`{shown}`", "" if array is None else _kind_of(array)) if one)
            raise refusal(
                "OC1105",
                f"{what} is written in a Tape with memory=, which would have to copy it: it copies fields that are not sparse or quantised, ndarrays, numpy arrays and torch's tensors",
                "leave memory= out, or compute it in another array",
            )
        if getattr(array, "_companion_kind", None) is not None:
            raise refusal(
                "OC1105",
                f"`{name}` holds derivatives, and is written in a Tape with memory=, whose calls run again on the way back",
                "write derivatives before the tape or behind it",
            )
        other = self.known.writer_since(array, 0)
        if other is not None:
            raise refusal(
                "OC1105",
                f"`{name}` shares memory with `{other}`, and both are written in a Tape with memory=",
                "write one of them alone",
            )
        number = len(self.arrays)
        self.numbers[id(array)] = number
        self.arrays.append(array)
        self.known.note(array, getattr(array, "name", "") or name)
        self.versions.append([])
        with self.unseen():
            self.sizes.append(_bytes_of_array(array))
        return number

    def _note(self, written: Iterable[int], place: int) -> None:
        """What was written by the call before a place."""
        for number in written:
            versions = self.versions[number]
            if not versions or versions[-1] != place:
                versions.append(place)

    def _version(self, number: int, place: int) -> int:
        """Which version an array has at a place: where the call ended that wrote it last. One from before is 0."""
        versions = self.versions[number]
        at = bisect_right(versions, place)
        return versions[at - 1] if at else 0

    def _join(self, number: int) -> None:
        """An array is about to lose something: what it holds now is right for all places so far."""
        if number in self.start:
            return
        self._make_room(2 * self.sizes[number])
        place = len(self.tape.calls)
        with self.unseen():
            self.start[number] = self._taken(number, self._version(number, place))
        self.joined[number] = place
        self.staying += self.sizes[number]

    # ---- copies ----

    @property
    def state(self) -> int:
        """The bytes of all arrays that are copied."""
        return sum(self.sizes[number] for number in self.start)

    def _left(self) -> int:
        """The bytes that are left for copies, if the way back has what it needs."""
        end = 0 if self.end else self.state
        return self.limit - self.live - end - self.largest - self.recorded

    def _make_room(self, size: int) -> None:
        """Gives copies up until there is room for something that cannot be computed again."""
        while self._left() < size and len(self.kept) > 1:
            self._thin()
        if self._left() < size:
            needed = self.limit - self._left() + size
            raise OctantsRuntimeError(
                f"memory={self.limit} is too small for this Tape: at least {needed} bytes are needed for what its calls up to this one overwrite and the host writes, once at the "
                "beginning and once at the end, and for what its kernels keep; later calls may need more"
            )

    def _taken(self, number: int, version: int) -> _Copy:
        """A copy of what an array holds."""
        array, size = self.arrays[number], self.sizes[number]
        free = self.free.get(number)
        if free:
            made = free.pop()
        else:
            if self._allocated() + size > self.limit:
                self.free.clear()
            made = like(array)
        put(made, array)
        self.live += size
        self.most = max(self.most, self._allocated())
        copy = _Copy(made, number, version)
        self.copies.setdefault((number, version), copy)
        return copy

    def _allocated(self) -> int:
        """The bytes of copies, also of those that wait to be used again."""
        return self.recorded + self.live + sum(len(made) * self.sizes[number] for number, made in self.free.items())

    def _release(self, copy: _Copy) -> None:
        """One place fewer needs a copy."""
        copy.users -= 1
        if not copy.users:
            self.live -= self.sizes[copy.number]
            if self.copies.get((copy.number, copy.version)) is copy:
                del self.copies[copy.number, copy.version]
            self.free.setdefault(copy.number, []).append(copy.array)

    def _missing(self, place: int) -> list[int]:
        """Arrays that a copy of the state at a place would have to copy."""
        return [
            number
            for number in self.start
            if place > self.joined[number] and (number, self._version(number, place)) not in self.copies
        ]

    def _keep(self, place: int) -> None:
        """Keeps the state, which is that at a place."""
        found = {}
        for number in self.start:
            if place <= self.joined[number]:
                continue
            version = self._version(number, place)
            copy = self.copies.get((number, version))
            if copy is None:
                copy = self._taken(number, version)
            else:
                copy.users += 1
            found[number] = copy
        self.kept[place] = found

    def _keep_now_and_then(self, place: int) -> None:
        """While the calls run first, nobody knows how many there will be: copies are before every so many calls, and every other one goes when half of the memory is used."""
        assert self.first is not None
        if place == self.first or (place - self.first) % self.every:
            return
        missing = self._missing(place)
        while not self._is_room_for(missing):
            if len(self.kept) == 1:
                return
            self._thin()
            if (place - self.first) % self.every:
                return
            missing = self._missing(place)
        if missing:
            with self.unseen():
                self._keep(place)
        else:
            self._keep(place)

    def _is_room_for(self, missing: list[int]) -> bool:
        """Whether half of the memory has room for one more place."""
        kept = self.live - self.staying
        size = sum(self.sizes[number] for number in missing)
        return len(self.kept) < _MOST_COPIES and 2 * (kept + size) <= self._left() + kept

    def _thin(self) -> None:
        """Gives up every other copy."""
        assert self.first is not None
        self.every *= 2
        for place in [one for one in self.kept if (one - self.first) % self.every]:
            self._drop(place)

    def _drop(self, place: int) -> None:
        for copy in self.kept.pop(place).values():
            self._release(copy)

    # ---- the way back ----

    def close(self) -> None:
        """The block of the tape is over."""
        self.settle()
        self.entries = self.tape._log.entries

    def clear(self) -> None:
        """Gives all memory back."""
        for held in (self.start, self.kept, self.copies, self.free, self.end, self.pending):
            held.clear()
        self.live = self.staying = self.recorded = 0

    def go_back(self) -> None:
        """Through all calls. All arrays hold what they held before when it is over."""
        calls = self.tape.calls
        if self.first is None:
            for recorded in reversed(calls):
                self.tape._enter_stream(recorded)
                self.tape._go_back(recorded)
            return
        self._require_as_it_was()
        last = len(calls)
        try:
            for number in self.start:
                self.holds[number] = version = self._version(number, last)
                self.end[number] = self._taken(number, version)
            for place in reversed(range(self.first, last)):
                run = calls[place].run
                if place + 1 == last or place + 1 in self.kept or (run is not None and run.is_derived):
                    self._go_back(place, last)
            self._restore(self.first)
            for recorded in reversed(calls[: self.first]):
                self.tape._enter_stream(recorded)
                self.tape._go_back(recorded)
        finally:
            self.tape._streams.enter(None)
            for number, copy in self.end.items():
                put(self.arrays[number], copy.array)
            self.clear()

    def _go_back(self, place: int, last: int) -> None:
        """One call back, from the nearest state before it."""
        for behind in [one for one in self.kept if one > place + 1]:
            self._drop(behind)
        here = max(one for one in self.kept if one <= place)
        begin = here
        self._restore(here)
        while here < place:
            left = self._left() // self.state if self.state else 0
            ahead = next_copy(place + 1 - here, left)
            for one in range(here, here + ahead):
                self._run_again(one)
            here += ahead
            if left > 0 and here < place:
                self.tape._streams.enter(None)
                self._keep(here)
        record = self._run_again(place)
        recorded = self.tape.calls[place]
        self.tape._streams.enter(None)
        if place + 1 == last:
            self._require_same(begin, place, self.end)
        elif place + 1 in self.kept:
            self._require_same(begin, place, self.kept[place + 1])
            self._drop(place + 1)
        if record is not None:
            self.tape._enter_stream(recorded)
            # It runs on what its call has just left. Gradients are as the first run has left them.
            recorded.called._replay_grad(
                record, recorded.kwargs, log=self.tape._log, values=self.tape._log.entries, derivatives=recorded.entries
            )

    def _restore(self, place: int) -> None:
        """Sets the arrays to what they held at a place."""
        self.tape._streams.enter(None)
        for number, start in self.start.items():
            copy = self.kept[place].get(number, start)
            if self.holds[number] != copy.version:
                put(self.arrays[number], copy.array)
                self.holds[number] = copy.version

    def _run_again(self, place: int):
        """A call or a write of the host, again."""
        recorded = self.tape.calls[place]
        self.again += 1
        if recorded.run is None:
            self.tape._streams.enter(None)
            recorded.called()
            record = None
        else:
            self.tape._enter_stream(recorded)
            record = recorded.called._run_again(recorded.run, recorded.kwargs)
        for number in recorded.written:
            self.holds[number] = place + 1
        return record

    def _require_as_it_was(self) -> None:
        """Refuses a way back behind which the arrays of the tape have been written, or that has lost something."""
        tape = self.tape
        if self.failed is not None:
            raise refusal(
                "OC1105",
                f"`{self.failed}` has failed in a Tape with memory=, and may have written something: nobody can run it again",
                "leave the block of the tape with the exception",
            )
        arrays = {id(one): one for call in tape.calls if call.run is not None for one in call.run.arrays}
        arrays |= {id(one): one for one in (*self.arrays, *own_fields())}
        derivatives = {id(one.grad) for one in arrays.values() if getattr(one, "grad", None) is not None}
        for array in arrays.values():
            if id(array) in derivatives and id(array) in self.numbers:
                raise refusal(
                    "OC1105",
                    f"{array!r} holds derivatives, and was written in a Tape with memory=, whose calls run again on the way back",
                    "write derivatives before the tape or behind it",
                )
            writer = None
            if tape._log.entries != self.entries and self.overwrites.is_used(array):
                writer = tape._log.writer_since(array, self.entries or 0)
            if writer is not None:
                raise refusal(
                    "OC1105",
                    f"the gradients of a Tape with memory= need what its calls saw of {array!r}, and {writer} has written there since",
                    "compute the gradients before arrays are written",
                )

    def _require_same(self, begin: int, place: int, expected: dict[int, _Copy]) -> None:
        """Refuses calls that come to another state than the first time."""
        from .tape import add_in_any_order

        calls = self.tape.calls[begin : place + 1]
        for number, copy in expected.items():
            found, then = _numbers_of(self.arrays[number]), _numbers_of(copy.array)
            if found.tobytes() == then.tobytes():
                continue
            kernels = {id(call.called): call.called for call in calls if call.run is not None}
            if add_in_any_order(kernels.values()) and are_alike(found, then):
                continue
            runs = [f"`{call.called.__name__}`, called at {call.run.line}" for call in calls if call.run is not None]
            which = " to ".join(dict.fromkeys((runs[0], runs[-1])))
            name = getattr(self.arrays[number], "name", "") or repr(self.arrays[number])
            raise refusal(
                "OC1105",
                f"calls of a Tape with memory= have come to another state when they ran again: `{name}` holds other numbers behind {which}. They read what is not the same each time, "
                "such as the time, or what another library writes",
                "write arrays by kernels or by their own methods, and read what changes from an array",
            )


def _value(element):
    """What an element is now: those of fields of matrices look at the field."""
    return element.to_list() if hasattr(element, "to_list") else element


def _parts(array) -> Iterable:
    """The arrays that are copied for one: members of a field of structs."""
    if getattr(array, "_is_struct", False):
        return [part for name in array.keys for part in _parts(array.get_member_field(name))]
    return (array,)


def _can_be_copied(array) -> bool:
    if isinstance(array, (ScalarField, MatrixField)):
        return not array._is_sparse and getattr(type(array), "__octants_encoded__", None) is None
    return isinstance(array, Ndarray) or is_torch(array) or _is_numpy(array)


def _is_numpy(array) -> bool:
    import numpy

    return isinstance(array, numpy.ndarray)


def _numbers_of(array):
    """A numpy array with the elements."""
    return array.copy() if _is_numpy(array) else numbers_of(array)


def _kind_of(array) -> str:
    if getattr(array, "_is_sparse", False):
        return "a sparse field"
    return f"a {type(array).__name__}"


def _bytes_of_array(array) -> int:
    if is_torch(array):
        return array.numel() * array.element_size()
    return _numbers_of(array).nbytes


def _same_everywhere(array) -> Any:
    """The number that all elements of an array of scalars are, if they are."""
    numbers = _numbers_of(array)
    if isinstance(array, MatrixField) or (isinstance(array, Ndarray) and array.element_shape) or not numbers.size:
        return None
    first = numbers.reshape(-1)[0]
    return first.item() if numbers.tobytes() == first.tobytes() * numbers.size else None
