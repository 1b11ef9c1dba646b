"""Forks of a process that uses Octants: what becomes of the children, and of the parent.

    python tests/host/forking.py compiling 1000        forks while another thread compiles

A child uses what its parent has made, compiles kernels of its own, and leaves with what it saw: all is right, it was told that it cannot use Octants, or
something is wrong. One that hangs is ended by its alarm.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import os
import signal
import sys
import threading
import time
import traceback

import numpy as np

import octants as oc

#: How children leave.
RIGHT, TOLD, WRONG = 0, 3, 4

#: Steps of one iteration that take longer than a fork waits, on any machine.
LONG = 1_000_000_000

#: Seconds after which a child hangs. Most take some hundredths.
CHILD_SECONDS = 60

LENGTH = 100_000

IntArray = oc.types.ndarray(dtype=oc.i32, ndim=1)


@oc.kernel
def add(a: IntArray, value: oc.template()):
    for i in a:
        a[i] += value


@oc.kernel
def long_sums(a: IntArray, steps: oc.i32):
    for i in a:
        v = a[i]
        oc.loop_config(serialize=True)
        for _ in range(steps):
            # Several steps cannot be computed as one.
            v = (v ^ (v >> 7)) * 1664525 + 1013904223
        a[i] = v


@oc.kernel
def total(a: IntArray) -> oc.i64:
    s = oc.i64(0)
    for i in a:
        s += a[i]
    return s


class World:
    """What the parent has made, and what it must hold."""

    def __init__(self):
        self.array = oc.ndarray(oc.i32, LENGTH)
        self.stream = oc.create_stream()
        self.array.fill(7)
        self.sum = 7 * LENGTH

    def use(self, number: int) -> None:
        """Whatever a program does. ``number`` makes it a kernel that was not compiled before."""
        assert total(self.array) == self.sum, total(self.array)
        add(self.array, number)
        self.sum += number * LENGTH
        own = np.arange(1000, dtype=np.int32)
        add(own, number, qd_stream=self.stream)
        assert (own == np.arange(1000) + number).all()
        with oc.create_stream() as stream:
            add(self.array, 1, qd_stream=stream)
        self.sum += LENGTH
        assert self.array.to_numpy().sum(dtype=np.int64) == self.sum
        field = oc.field(oc.i32, shape=1000)
        field.fill(number)
        assert field.to_numpy().sum() == 1000 * number


def child(work) -> None:
    """Leaves with what became of the work, and so that a hang is seen."""
    signal.alarm(CHILD_SECONDS)
    try:
        work()
        code = RIGHT
    except RuntimeError as error:
        code = TOLD if "OC0907" in str(error) else WRONG
        # Told once more, at whatever call, and nothing hangs when the parent's things go.
        if code == TOLD and len(str(error).splitlines()[0]) > 200:
            code = WRONG
        if code == WRONG:
            traceback.print_exc()
    except BaseException:
        traceback.print_exc()
        code = WRONG
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def forked(work) -> int:
    process = os.fork()
    if process == 0:
        child(work)
    _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status)


@contextlib.contextmanager
def beside(work):
    """Another thread does the work again and again."""
    over, failed = threading.Event(), []

    def run():
        number = 1000
        try:
            while not over.is_set():
                number += 1
                work(number)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if failed:
        raise failed[0]


def count(forks: int, work) -> dict[int, int]:
    seen: dict[int, int] = {}
    for number in range(forks):
        code = forked(lambda number=number: work(number))
        seen[code] = seen.get(code, 0) + 1
    return seen


def compiling(forks: int, world: World) -> dict[int, int]:
    """Another thread compiles all the time, and so does every child."""
    other = oc.ndarray(oc.i32, 100)

    def work(number: int) -> None:
        add(world.array, -1 - number)
        assert world.array.to_numpy().sum(dtype=np.int64) == world.sum + (-1 - number) * LENGTH
        if number % 20 == 0:
            add(world.array, 1 + number)
            world.use(-2 - forks - number)

    with beside(lambda number: add(other, number)):
        return count(forks, work)


class SlowModule(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """A module of the package that takes until ``ready`` to import."""

    NAME = "octants._slow_to_import"

    def __init__(self):
        self.begun, self.ready = threading.Event(), threading.Event()

    def find_spec(self, name, path, target=None):
        return importlib.machinery.ModuleSpec(name, self) if name == self.NAME else None

    def exec_module(self, module):
        self.begun.set()
        assert self.ready.wait(CHILD_SECONDS)
        module.value = 7


def importing(forks: int, world: World) -> dict[int, int]:
    """Another thread is amid an import of a module of the package."""
    seen: dict[int, int] = {}
    for number in range(forks):
        slow = SlowModule()
        sys.meta_path.insert(0, slow)

        def work(slow=slow, number=number) -> None:
            slow.ready.set()
            assert importlib.import_module(slow.NAME).value == 7
            world.use(-1 - number)

        thread = threading.Thread(target=importlib.import_module, args=(slow.NAME,))
        thread.start()
        slow.begun.wait()
        code = forked(work)
        seen[code] = seen.get(code, 0) + 1
        slow.ready.set()
        thread.join()
        assert sys.modules.pop(slow.NAME).value == 7
        sys.meta_path.remove(slow)
    return seen


def quiet(forks: int, world: World) -> dict[int, int]:
    """Nothing else happens: every child is right."""
    return count(forks, lambda number: world.use(-1 - number))


def launching(forks: int, world: World) -> dict[int, int]:
    """Another thread launches and copies all the time."""
    other, stream = oc.ndarray(oc.i32, LENGTH), oc.create_stream()

    def work(number: int) -> None:
        long_sums(other, 20)
        long_sums(other, 20, qd_stream=stream)
        other.to_numpy()

    with beside(work):
        return count(forks, lambda number: world.use(-1 - number))


def starting(forks: int, world: World) -> dict[int, int]:
    """Another thread begins and ends sessions of its own program; children begin theirs."""

    def session(number: int) -> None:
        oc.init(arch=getattr(oc, sys.argv[3] if len(sys.argv) > 3 else "cpu"), log_level="error", offline_cache=False)
        World().use(-1 - number)

    with beside(session):
        return count(forks, session)


def pending(forks: int, world: World) -> dict[int, int]:
    """An event that is pending in the parent, of a kernel that takes longer than a fork waits."""
    other, stream, event = oc.ndarray(oc.i32, 2), oc.create_stream(), oc.create_event()
    long_sums(other, 1)

    def work(number: int) -> None:
        event.synchronize()
        event.wait()
        stream.synchronize()
        world.use(-1 - number)

    seen: dict[int, int] = {}
    for number in range(forks):
        long_sums(other, LONG, qd_stream=stream)
        event.record(qd_stream=stream)
        code = forked(lambda number=number: work(number))
        seen[code] = seen.get(code, 0) + 1
        event.synchronize()
    return seen


def resetting(forks: int, world: World) -> dict[int, int]:
    """A child ends its session; the parent's goes on."""

    def work(number: int) -> None:
        if number % 2 == 0:
            oc.reset()
        oc.init(arch=oc.cpu, log_level="error", offline_cache=False)
        World().use(-1 - number)

    seen: dict[int, int] = {}
    for number in range(forks):
        code = forked(lambda number=number: work(number))
        seen[code] = seen.get(code, 0) + 1
        world.use(5 + number)
    return seen


def letting_go(forks: int, world: World) -> dict[int, int]:
    """A child that is cut off lets go of all that its parent has made, and ends as a program does."""
    other, stream = oc.ndarray(oc.i32, 2), oc.create_stream()
    long_sums(other, 1)
    seen: dict[int, int] = {}
    for _ in range(forks):
        long_sums(other, LONG, qd_stream=stream)
        process = os.fork()
        if process == 0:
            signal.alarm(CHILD_SECONDS)
            try:
                world.array.to_numpy()
            except RuntimeError as error:
                assert "OC0907" in str(error), error
                world.__dict__.clear()
                del other, stream
                oc.reset()
                sys.exit(TOLD)
            sys.exit(WRONG)
        _, status = os.waitpid(process, 0)
        code = os.waitstatus_to_exitcode(status)
        seen[code] = seen.get(code, 0) + 1
        stream.synchronize()
    return seen


def main() -> int:
    name, forks = sys.argv[1], int(sys.argv[2])
    device = sys.argv[3] if len(sys.argv) > 3 else "cpu"
    # "process" is a device that another process has opened.
    options = {"device_process": True} if device == "process" else {}
    arch = oc.remote if device == "process" else getattr(oc, device)
    oc.init(arch=arch, log_level="error", offline_cache=False, **options)
    world, begin = World(), time.monotonic()
    seen = globals()[name](forks, world)
    if name != "starting":
        world.use(3)
    print(f"{forks} forks in {time.monotonic() - begin:.1f} s: {sorted(seen.items())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
