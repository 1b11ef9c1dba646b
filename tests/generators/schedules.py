"""Random schedules of streams, events and forks, whose results are those of their actions one after the other.

A schedule is a list of actions: launches of a few kernels, fills and copies on streams, reads and writes of the host, recordings and waits. What it
must give is what numpy gives in the order of the list. Wherever two actions touch the same array and one writes it, the list orders them: by
a recording and a wait, through other streams, or by the host. Nothing else is ordered, so that streams run ahead of each other as far as
they may. Kernels take random time.

    python tests/generators/schedules.py SEED                               prints a schedule and checks it
    python tests/generators/schedules.py FIRST LAST --device cuda --jobs 4  checks the seeds of a range
"""

from __future__ import annotations

import argparse
import concurrent.futures
import subprocess
import sys
import time
from pathlib import Path

# For what the tests share, where this runs as a script.
sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np
from devices import INTERPRETED, missing

import octants as oc

#: Elements of each array, and how many arrays there are.
LENGTH, ARRAYS = 64, 6

#: The default stream is number 0.
STREAMS, EVENTS = 5, 6

#: Schedules that one process checks.
IN_ONE_PROCESS = 500

#: Seconds that a batch may take; five hundred schedules take about 20.
BATCH_SECONDS = 600

IntArray = oc.types.ndarray(dtype=oc.i32, ndim=1)


# ---- kernels, and the same for numpy --------------------------------------------------------------------------------------


@oc.func
def slow(x, steps):
    v = x
    oc.loop_config(serialize=True)
    for _ in range(steps):
        v = v * 1664525 + 1013904223
    return v


@oc.func
def mix_into(w, r, c, steps):
    """Not commutative, and element i needs element n - 1 - i: whatever comes too early or too late is seen."""
    for i in range(w.shape[0]):
        w[i] = slow(w[i] * 5 + c, steps)
    for i in range(w.shape[0]):
        w[i] += r[w.shape[0] - 1 - i]


@oc.kernel
def mix(w: IntArray, r: IntArray, c: oc.i32, steps: oc.i32):
    mix_into(w, r, c, steps)


@oc.kernel
def part(w: IntArray, r: IntArray, c: oc.i32, steps: oc.i32):
    """A bound that the device computes, and a value that one loop leaves for the next."""
    end = (slow(r[0], steps) & 31) + 1
    total = 0
    for i in range(end):
        total += r[i] & 255
    for i in range(end):
        w[i] = w[i] * 3 + total + c


@oc.kernel
def total_of(r: IntArray, c: oc.i32, steps: oc.i32) -> oc.i32:
    s = 0
    for i in range(r.shape[0]):
        s += slow(r[i], steps) & 1023
    return s + c


@oc.kernel
def fork2(w: IntArray, x: IntArray, r: IntArray, c: oc.i32, steps: oc.i32):
    with oc.stream_parallel():
        mix_into(w, r, c, steps)
    with oc.stream_parallel():
        x[0] += c
        mix_into(x, r, c + 1, steps)


@oc.kernel
def fork3(w: IntArray, x: IntArray, y: IntArray, r: IntArray, c: oc.i32, steps: oc.i32):
    with oc.stream_parallel():
        mix_into(w, r, c, steps)
    with oc.stream_parallel():
        end = (slow(r[1], steps) & 31) + 1
        for i in range(end):
            x[i] = x[i] * 3 + c
        for i in range(end):
            x[i] += r[end - 1 - i]
    with oc.stream_parallel():
        oc.loop_config(serialize=True)
        for i in range(1, y.shape[0]):
            y[i] += y[i - 1] + r[i]
        if y[0] > 0:
            for i in range(y.shape[0]):
                y[i] = slow(y[i], steps)
        y[0] += 1


def np_slow(x, steps):
    """All steps at once: a factor and a summand, doubled for each bit of their number."""
    factor, summand, base, add = 1, 0, 1664525, 1013904223
    while steps:
        if steps & 1:
            factor, summand = factor * base % 2**32, (summand * base + add) % 2**32
        base, add, steps = base * base % 2**32, (add * base + add) % 2**32, steps >> 1
    return (np.atleast_1d(x).astype(np.uint32) * np.uint32(factor) + np.uint32(summand)).astype(np.int32)


def np_mix(w, r, c, steps):
    w[:] = np_slow(w * np.int32(5) + np.int32(c), steps)
    w += r[::-1]


def np_part(w, r, c, steps):
    end = (int(np_slow(r[0], steps)[0]) & 31) + 1
    total = int((r[:end] & 255).sum())
    w[:end] = w[:end] * np.int32(3) + np.int32(total + c)


def np_total_of(r, c, steps):
    return int((np_slow(r, steps) & 1023).sum()) + c


def np_fork2(w, x, r, c, steps):
    np_mix(w, r, c, steps)
    x[:1] += np.int32(c)
    np_mix(x, r, c + 1, steps)


def np_fork3(w, x, y, r, c, steps):
    np_mix(w, r, c, steps)
    end = (int(np_slow(r[1], steps)[0]) & 31) + 1
    x[:end] = x[:end] * np.int32(3) + np.int32(c)
    x[:end] += r[:end][::-1]
    y[1:] += r[1:]
    y[:] = np.cumsum(y, dtype=np.int32)
    if y[0] > 0:
        y[:] = np_slow(y, steps)
    y[:1] += np.int32(1)


#: The kernel, its meaning, and how many arrays it writes before the one that it reads.
KERNELS = {
    "mix": (mix, np_mix, 1),
    "part": (part, np_part, 1),
    "fork2": (fork2, np_fork2, 2),
    "fork3": (fork3, np_fork3, 3),
    "total_of": (total_of, np_total_of, 0),
}


# ---- schedules ------------------------------------------------------------------------------------------------------------


class Schedule:
    """The actions of a seed. While they are drawn, vector clocks say which work is known to be over when a stream goes on: an entry
    for each stream, counting what that one was told."""

    def __init__(self, seed: int, most_steps: int):
        self.random = np.random.default_rng(seed)
        self.most_steps = most_steps
        self.actions: list[tuple] = []
        self.told = np.zeros(STREAMS, int)
        #: What is over when each stream goes on, when each event is passed, and for the host.
        self.known = np.zeros((STREAMS, STREAMS), int)
        self.recorded: list[np.ndarray | None] = [None] * EVENTS
        self.host = np.zeros(STREAMS, int)
        #: For each array the work that wrote it last, and the work that has read it since: a stream and its count.
        self.writer: list[tuple[int, int] | None] = [None] * ARRAYS
        self.readers: list[list[tuple[int, int]]] = [[] for _ in range(ARRAYS)]
        for _ in range(int(self.random.integers(10, 50))):
            self.draw()

    def number(self, below: int) -> int:
        return int(self.random.integers(below))

    def over(self, stream: int) -> np.ndarray:
        known = np.maximum(self.known[stream], self.host)
        known[stream] = self.told[stream]
        return known

    # -- order

    def record(self, event: int, stream: int):
        self.actions.append(("record", event, stream))
        self.recorded[event] = self.over(stream)

    def wait(self, event: int, stream: int):
        self.actions.append(("wait", event, stream))
        self.known[stream] = np.maximum(self.known[stream], self.recorded[event])

    def come_after(self, stream: int, other: int, count: int):
        """What the stream is told next comes after work of another one."""
        if self.over(stream)[other] >= count:
            return
        how = self.number(10)
        if how < 6:
            covering = [e for e in range(EVENTS) if self.recorded[e] is not None and self.recorded[e][other] >= count]
            if not covering or how == 0:
                event = self.number(EVENTS)
                self.record(event, other)
                covering = [event]
            self.wait(covering[self.number(len(covering))], stream)
        elif how < 8:
            # Through a third stream.
            third, event = self.number(STREAMS), self.number(EVENTS)
            self.record(event, other)
            self.wait(event, third)
            self.record((event + 1) % EVENTS, third)
            self.wait((event + 1) % EVENTS, stream)
        elif how == 8:
            event = self.number(EVENTS)
            self.record(event, other)
            self.actions.append(("synchronize_event", event))
            self.host = np.maximum(self.host, self.recorded[event])
        else:
            self.actions.append(("synchronize", other))
            self.host = np.maximum(self.host, self.over(other))

    def order(self, stream: int, writes: list[int], reads: list[int]):
        work = [self.writer[array] for array in writes + reads]
        work += [reader for array in writes for reader in self.readers[array]]
        for one in work:
            if one is not None:
                self.come_after(stream, *one)

    def tell(self, action: tuple, stream: int, writes: list[int], reads: list[int]):
        self.actions.append(action)
        self.told[stream] += 1
        now = (stream, int(self.told[stream]))
        for array in reads:
            self.readers[array].append(now)
        for array in writes:
            self.writer[array], self.readers[array] = now, []

    # -- actions

    def draw(self):
        kinds = ["launch"] * 12 + [
            "fill",
            "copy",
            "numpy",
            "read",
            "read_on",
            "write",
            "element",
            "record",
            "sync",
            "renew",
        ]
        getattr(self, f"draw_{kinds[self.number(len(kinds))]}")()

    def scalars(self) -> tuple[int, int]:
        """A constant, and how many steps the kernel takes: as a rule few."""
        steps = self.number(self.most_steps) if self.number(3) == 0 else self.number(8)
        return self.number(100), steps

    def draw_launch(self):
        name = list(KERNELS)[self.number(len(KERNELS))]
        count = KERNELS[name][2]
        arrays = [int(array) for array in self.random.permutation(ARRAYS)[: count + 1]]
        writes, reads = arrays[:count], arrays[count:]
        stream = self.number(STREAMS)
        self.order(stream, writes, reads)
        self.tell(("launch", name, stream, arrays, *self.scalars()), stream, writes, reads)

    def draw_numpy(self):
        """An array of numpy's is written and there when the launch returns."""
        array, stream = self.number(ARRAYS), self.number(STREAMS)
        self.order(stream, [], [array])
        self.tell(("numpy", stream, array, *self.scalars()), stream, [], [array])

    def draw_fill(self):
        array, stream = self.number(ARRAYS), self.number(STREAMS)
        self.order(stream, [array], [])
        self.tell(("fill", array, self.number(1000), stream), stream, [array], [])

    def draw_copy(self):
        to, source = (int(array) for array in self.random.permutation(ARRAYS)[:2])
        stream = self.number(STREAMS)
        self.order(stream, [to], [source])
        self.tell(("copy", to, source, stream), stream, [to], [source])

    def draw_read(self):
        """The host's reads come after the work that they need, whatever stream that is on."""
        self.actions.append(("read", self.number(ARRAYS)))

    def draw_read_on(self):
        array, stream = self.number(ARRAYS), self.number(STREAMS)
        self.order(stream, [], [array])
        self.actions.append(("read_on", array, stream))

    def draw_element(self):
        self.actions.append(("element", self.number(ARRAYS), self.number(LENGTH)))

    def draw_write(self):
        """So do its writes, which are in the default stream's order then."""
        array = self.number(ARRAYS)
        self.tell(("write", array, self.number(1000)), 0, [array], [])

    def draw_record(self):
        self.record(self.number(EVENTS), self.number(STREAMS))

    def draw_sync(self):
        if self.number(2):
            self.actions.append(("sync",))
            self.host = np.maximum(self.host, self.over(0))
        else:
            self.actions.append(("sync_all",))
            self.host = self.told.copy()

    def draw_renew(self):
        """A stream is destroyed, which waits for it, and another takes its place."""
        stream = 1 + self.number(STREAMS - 1)
        self.actions.append(("renew", stream))
        self.host = np.maximum(self.host, self.over(stream))


# ---- meaning --------------------------------------------------------------------------------------------------------------


def first_arrays(seed: int) -> list[np.ndarray]:
    random = np.random.default_rng(seed + 1_000_000)
    return [random.integers(-1000, 1000, LENGTH).astype(np.int32) for _ in range(ARRAYS)]


def written(value: int) -> np.ndarray:
    return np.arange(value, value + LENGTH, dtype=np.int32)


def in_order(schedule: Schedule, seed: int) -> tuple[list, list[np.ndarray]]:
    """What the host sees on the way, and the arrays in the end."""
    arrays, seen = first_arrays(seed), []
    with np.errstate(over="ignore"):
        for action in schedule.actions:
            match action:
                case ("launch", name, _, chosen, c, steps):
                    result = KERNELS[name][1](*(arrays[array] for array in chosen), c, steps)
                    if result is not None:
                        seen.append(result)
                case ("numpy", _, array, c, steps):
                    own = written(c)
                    np_mix(own, arrays[array], c, steps)
                    seen.append(own)
                case ("fill", array, value, _):
                    arrays[array][:] = value
                case ("copy", to, source, _):
                    arrays[to][:] = arrays[source]
                case ("read", array) | ("read_on", array, _):
                    seen.append(arrays[array].copy())
                case ("element", array, at):
                    seen.append(int(arrays[array][at]))
                case ("write", array, value):
                    arrays[array][:] = written(value)
    return seen, arrays


def on_device(schedule: Schedule, seed: int) -> tuple[list, list[np.ndarray]]:
    arrays, seen = [oc.ndarray(oc.i32, LENGTH) for _ in range(ARRAYS)], []
    for array, values in zip(arrays, first_arrays(seed), strict=True):
        array.from_numpy(values)
    oc.sync()
    streams = [None, *(oc.create_stream() for _ in range(1, STREAMS))]
    events = [oc.create_event() for _ in range(EVENTS)]
    try:
        for action in schedule.actions:
            perform(action, arrays, streams, events, seen)
        return seen, [array.to_numpy() for array in arrays]
    finally:
        for stream in streams[1:]:
            stream.destroy()
        for event in events:
            event.destroy()


def perform(action: tuple, arrays, streams, events, seen):
    match action:
        case ("launch", name, stream, chosen, c, steps):
            result = KERNELS[name][0](*(arrays[array] for array in chosen), c, steps, qd_stream=streams[stream])
            if result is not None:
                seen.append(result)
        case ("numpy", stream, array, c, steps):
            own = written(c)
            mix(own, arrays[array], c, steps, qd_stream=streams[stream])
            seen.append(own)
        case ("fill", array, value, stream):
            arrays[array].fill(value, qd_stream=streams[stream])
        case ("copy", to, source, stream):
            arrays[to].copy_from(arrays[source], qd_stream=streams[stream])
        case ("read", array):
            seen.append(arrays[array].to_numpy())
        case ("read_on", array, stream):
            seen.append(arrays[array].to_numpy(qd_stream=streams[stream]))
        case ("element", array, at):
            seen.append(int(arrays[array][at]))
        case ("write", array, value):
            arrays[array].from_numpy(written(value))
        case ("record", event, stream):
            events[event].record(qd_stream=streams[stream])
        case ("wait", event, stream):
            events[event].wait(qd_stream=streams[stream])
        case ("synchronize_event", event):
            events[event].synchronize()
        case ("synchronize", 0) | ("sync",):
            oc.sync()
        case ("synchronize", stream):
            streams[stream].synchronize()
        case ("sync_all",):
            oc.sync(all=True)
        case ("renew", stream):
            streams[stream].destroy()
            streams[stream] = oc.create_stream()


def steps_for(device: str) -> int:
    return 12 if device in INTERPRETED else 4000


def check(seed: int, device: str) -> str | None:
    """What is wrong with the schedule of a seed on the session's device; nothing if all is right."""
    schedule = Schedule(seed, steps_for(device))
    (expected_seen, expected), (seen, found) = in_order(schedule, seed), on_device(schedule, seed)
    if len(seen) != len(expected_seen):
        return f"schedule {seed} on {device}: {len(seen)} things seen instead of {len(expected_seen)}"
    for number, (one, other) in enumerate(zip(seen, expected_seen, strict=True)):
        if not np.array_equal(one, other):
            return f"schedule {seed} on {device}: what the host saw as number {number} differs\n{one}\n{other}"
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        if not np.array_equal(one, other):
            return f"schedule {seed} on {device}: array {number} differs\n{one}\n{other}"
    return None


def check_range(first: int, last: int, device: str) -> list[str]:
    oc.init(arch=getattr(oc, device), log_level="error")
    wrong = [problem for seed in range(first, last) if (problem := check(seed, device))]
    oc.reset()
    return wrong


def batch(first: int, last: int, device: str) -> tuple[bool, str]:
    command = [sys.executable, __file__, str(first), str(last), "--device", device, "--in-process"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=BATCH_SECONDS)
    except subprocess.TimeoutExpired:
        return False, f"schedules {first} to {last} take longer than {BATCH_SECONDS} s"
    return done.returncode == 0, done.stdout + done.stderr


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int, nargs="?")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--in-process", action="store_true", help="check the range in this process")
    arguments = parser.parse_args()
    if reason := missing(arguments.device):
        print(reason)
        return 1
    if arguments.last is None:
        for action in Schedule(arguments.first, steps_for(arguments.device)).actions:
            print(*action)
        arguments.last, arguments.in_process = arguments.first + 1, True
    if arguments.in_process:
        wrong = check_range(arguments.first, arguments.last, arguments.device)
        print(*wrong, sep="\n")
        return 1 if wrong else 0
    begin = time.monotonic()
    starts = range(arguments.first, arguments.last, IN_ONE_PROCESS)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        ranges = [(start, min(start + IN_ONE_PROCESS, arguments.last)) for start in starts]
        results = list(pool.map(lambda one: batch(*one, arguments.device), ranges))
    for right, text in results:
        if not right:
            print(text)
    count = arguments.last - arguments.first
    failed = sum(not right for right, _ in results)
    print(
        f"{count} schedules on {arguments.device} in {time.monotonic() - begin:.0f} s: {failed} of {len(results)} batches failed"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
