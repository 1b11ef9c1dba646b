"""Random schedules of several threads at once, with interrupts and resets, whose values are those of their actions one after the other.

Each thread of a round has a schedule of `schedules.py` with streams, events and arrays of its own, a field of its own in a tree that all share, and arrays
that come and go. Meanwhile signals reach the main thread: some handlers launch a kernel, some raise an exception. What only waits, reads or overwrites is
done once more after that, and must find what it would have found; after a launch that was interrupted, everything that it does not write is compared. At the
end of a round the session is reset, in some while the other threads are still at work: they are refused or right.

    python tests/generators/thread_schedules.py SEED                               checks one seed
    python tests/generators/thread_schedules.py FIRST LAST --device remote --jobs 2   checks the seeds of a range
    python tests/generators/thread_schedules.py 0 --seconds 3600                   checks seeds from one on, for an hour

What is drawn is the same for a seed in every run; when a signal strikes is not.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import copy
import faulthandler
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

# For what the tests share, where this runs as a script.
sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np
import schedules
from devices import INTERPRETED, missing
from schedules import ARRAYS, EVENTS, KERNELS, LENGTH, STREAMS, Schedule, first_arrays, in_order, perform

import octants as oc

#: Seconds after which a seed hangs. One takes about one.
SEED_SECONDS = 120

#: Seeds that one process checks.
IN_ONE_PROCESS = 20

#: Signals of a round that have a handler do something: what is interrupted is done once more, and has to come to an end.
MAX_STRIKES = 40

#: What a reset refuses: handles of the session before, and the session itself.
REFUSED = ("OC0804", "was reset", "no session", "another session")


class Struck(Exception):
    """What the handler raises."""


class Abandoned(Exception):
    """A launch was interrupted: the rest of the schedule is left out."""


@oc.kernel
def set_to(a: schedules.IntArray, value: oc.i32):
    for i in a:
        a[i] = value + i


@oc.kernel
def bump(field: oc.template(), by: oc.i32):
    for i in field:
        field[i] += by


# ---- one thread -----------------------------------------------------------------------------------------------------------


class Worker:
    """A schedule, what it works on, and what it has seen."""

    def __init__(self, seed: int, steps: int, field):
        self.seed, self.field = seed, field
        self.schedule = Schedule(seed, steps)
        self.random = np.random.default_rng(seed + 7)
        self.arrays = [oc.ndarray(oc.i32, LENGTH) for _ in range(ARRAYS)]
        for array, values in zip(self.arrays, first_arrays(seed), strict=True):
            array.from_numpy(values)
        self.streams = [None, *(oc.create_stream() for _ in range(1, STREAMS))]
        self.events = [oc.create_event() for _ in range(EVENTS)]
        self.seen: list = []
        self.values = np.arange(LENGTH, dtype=np.int32)
        field.from_numpy(self.values)
        #: How many actions were done, and the one that was interrupted after them.
        self.done = 0
        self.interrupted: tuple | None = None

    def run(self, protect=contextlib.nullcontext):
        try:
            for action in self.schedule.actions:
                self.act(action, protect)
                self.done += 1
                if self.random.integers(4) == 0:
                    self.look_aside(protect)
        except Abandoned:
            pass

    def act(self, action: tuple, protect):
        count = len(self.seen)
        while True:
            try:
                with protect():
                    perform(action, self.arrays, self.streams, self.events, self.seen)
                return
            except Struck:
                del self.seen[count:]
                if action[0] == "launch" and KERNELS[action[1]][2]:
                    self.interrupted = action
                    raise Abandoned from None

    def look_aside(self, protect):
        """What belongs to no schedule: the field in the tree that all share, and arrays that come and go."""
        kind = int(self.random.integers(4))
        by = int(self.random.integers(1000))
        stream = self.streams[int(self.random.integers(STREAMS))]
        if kind == 0:
            self.values = self.values + np.int32(by)
            self.until_done(lambda: self.field.from_numpy(self.values), protect)
        elif kind == 1:
            # Not under protection: a launch that was interrupted may be half done.
            bump(self.field, by)
            self.values = self.values + np.int32(by)
        elif kind == 2:
            found = self.until_done(self.field.to_numpy, protect)
            same(found, self.values, "the thread's own field")
        else:
            # The session may give its memory to the next one before the stream has passed it.
            for turn in range(3):
                passing = oc.ndarray(oc.i32, 1000 + 8 * turn)
                set_to(passing, by, qd_stream=stream)
                if turn == 1:
                    found = self.until_done(passing.to_numpy, protect)
                    same(found, np.arange(by, by + passing.shape[0]), "an array of a moment")

    def until_done(self, call, protect):
        while True:
            try:
                with protect():
                    return call()
            except Struck:
                continue

    def compare(self):
        schedule = copy.copy(self.schedule)
        schedule.actions = schedule.actions[: self.done]
        expected_seen, expected = in_order(schedule, self.seed)
        if len(self.seen) != len(expected_seen):
            raise AssertionError(f"schedule {self.seed}: {len(self.seen)} things seen instead of {len(expected_seen)}")
        for number, (one, other) in enumerate(zip(self.seen, expected_seen, strict=True)):
            same(one, other, f"schedule {self.seed}: what the host saw as number {number}")
        written = set()
        if self.interrupted is not None:
            _, name, _, chosen, *_ = self.interrupted
            written = set(chosen[: KERNELS[name][2]])
        for number, (array, values) in enumerate(zip(self.arrays, expected, strict=True)):
            if number not in written:
                same(array.to_numpy(), values, f"schedule {self.seed}: array {number} after {self.done} actions")
        same(self.field.to_numpy(), self.values, f"schedule {self.seed}: the thread's own field")

    def end(self):
        for one in (*self.streams[1:], *self.events):
            one.destroy()


def same(found, expected, what: str):
    if not np.array_equal(found, expected):
        raise AssertionError(f"{what} differs\n{found}\n{expected}")


# ---- signals --------------------------------------------------------------------------------------------------------------


class Signals:
    """Sends signals to this process at random times. A handler raises where the main thread is protected, and launches now and then."""

    def __init__(self, random, longest: float):
        self.random, self.longest = random, longest
        self.armed = self.inside = False
        self.struck = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.send, daemon=True)
        self.own = oc.ndarray(oc.i32, 16)

    def __enter__(self):
        self.before = signal.signal(signal.SIGUSR1, self.handle)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        signal.signal(signal.SIGUSR1, self.before)

    def send(self):
        while not self.over.wait(float(self.random.uniform(0, self.longest))):
            os.kill(os.getpid(), signal.SIGUSR1)

    def handle(self, _number, _frame):
        # A handler that another signal interrupts goes on with its own array.
        if not self.armed or self.inside or self.struck >= MAX_STRIKES:
            return
        self.struck += 1
        if self.struck % 3:
            self.armed = False
            raise Struck
        self.inside = True
        set_to(self.own, self.struck)
        same(self.own.to_numpy(), np.arange(self.struck, self.struck + 16), "what a handler launched")
        self.inside = False

    @contextlib.contextmanager
    def protect(self):
        self.armed = True
        try:
            yield
        finally:
            self.armed = False


# ---- a seed ---------------------------------------------------------------------------------------------------------------


def start(device: str, random):
    options = {"cpu_max_num_threads": int(random.integers(1, 4))} if device == "cpu" else {}
    oc.init(arch=getattr(oc, device), log_level="error", **options)


def run_thread(worker: Worker, resetting: threading.Event, problems: list):
    try:
        worker.run()
        if not resetting.is_set():
            worker.compare()
            worker.end()
    except Exception as error:
        text = str(error)
        if not (resetting.is_set() and isinstance(error, RuntimeError) and any(part in text for part in REFUSED)):
            problems.append("".join(traceback.format_exception(error)))


def one_round(seed: int, device: str, random) -> list[str]:
    steps = 12 if device in INTERPRETED else int(random.choice([100, 4000, 100_000]))
    count, ends_early = int(random.integers(1, 4)), int(random.integers(3)) == 0
    fields = [oc.field(oc.i32) for _ in range(count)]
    oc.root.dense(oc.i, LENGTH).place(*fields)
    workers = [Worker(100 * seed + number, steps, fields[number]) for number in range(count)]
    oc.sync()
    resetting, problems = threading.Event(), []
    threads = [threading.Thread(target=run_thread, args=(one, resetting, problems)) for one in workers[1:]]
    signals = Signals(random, 0.02)
    for thread in threads:
        thread.start()
    with signals:
        try:
            workers[0].run(signals.protect)
            workers[0].compare()
            workers[0].end()
        except Exception as error:
            problems.append("".join(traceback.format_exception(error)))
        if ends_early:
            resetting.set()
            oc.reset()
    for thread in threads:
        thread.join()
    return problems


def check(seed: int, device: str) -> str | None:
    """What is wrong with the rounds of a seed; nothing if all is right."""
    faulthandler.dump_traceback_later(SEED_SECONDS, exit=True)
    random = np.random.default_rng(seed)
    try:
        for number in range(int(random.integers(1, 4))):
            start(device, random)
            problems = one_round(10 * seed + number, device, random)
            if problems:
                return f"round {number} of seed {seed} on {device}:\n" + "\n".join(problems)
        oc.reset()
        return None
    finally:
        faulthandler.cancel_dump_traceback_later()


def check_range(first: int, last: int, device: str) -> list[str]:
    return [problem for seed in range(first, last) if (problem := check(seed, device))]


def batch(first: int, last: int, device: str) -> tuple[bool, str]:
    command = [sys.executable, __file__, str(first), str(last), "--device", device, "--in-process"]
    done = subprocess.run(command, capture_output=True, text=True)
    named = f"seeds {first} to {last - 1} on {device}: exit {done.returncode}\n"
    return done.returncode == 0, named + done.stdout + done.stderr


def batches(first: int, last: int | None, seconds: float | None):
    """Ranges of seeds, until there are no more or the time is over."""
    begin = time.monotonic()
    while (last is None or first < last) and (seconds is None or time.monotonic() - begin < seconds):
        end = first + IN_ONE_PROCESS if last is None else min(first + IN_ONE_PROCESS, last)
        yield first, end
        first = end


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int, nargs="?")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, help="check seeds from the first on for so long")
    parser.add_argument("--in-process", action="store_true", help="check the range in this process")
    arguments = parser.parse_args()
    if reason := missing(arguments.device):
        print(reason)
        return 1
    if arguments.last is None and arguments.seconds is None:
        arguments.last, arguments.in_process = arguments.first + 1, True
    if arguments.in_process:
        wrong = check_range(arguments.first, arguments.last, arguments.device)
        print(*wrong, sep="\n")
        return 1 if wrong else 0
    begin, checked, failed = time.monotonic(), 0, 0
    ranges = batches(arguments.first, arguments.last, arguments.seconds)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        # As many under way as there are jobs, so that the time is kept.
        running: set = set()
        while True:
            while len(running) < arguments.jobs and (one := next(ranges, None)) is not None:
                running.add(pool.submit(batch, *one, arguments.device))
                checked += one[1] - one[0]
            if not running:
                break
            done, running = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for right, text in (future.result() for future in done):
                if not right:
                    failed += 1
                    print(text, flush=True)
    took = time.monotonic() - begin
    print(f"{checked} seeds on {arguments.device} in {took:.0f} s: {failed} batches failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
