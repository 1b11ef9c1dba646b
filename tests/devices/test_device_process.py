"""A device that another process has: the same behaviour, and what becomes of the process."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

import octants as oc

pytestmark = pytest.mark.device_memory

Floats = oc.types.ndarray(dtype=oc.f32, ndim=1)


@pytest.fixture(autouse=True)
def process(fresh_session):
    oc.init(arch=getattr(oc, fresh_session), device_process=True, log_level="error")
    [child] = children()
    return child


def children() -> list[int]:
    """Processes that this one has started and that still run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(words[1]) == os.getpid() and words[0] != "Z":
            found.append(int(stat.parent.name))
    return found


@oc.kernel
def add(x: Floats, value: oc.f32):
    for i in x:
        x[i] += value


def test_arrays_fields_and_arrays_of_numpy():
    count = (3 << 20) + 5  # of more than one message
    numbers = np.random.default_rng(0).random(count, dtype=np.float32)
    a, x, y = oc.ndarray(oc.f32, count), oc.field(oc.f32, shape=(4, 5)), np.ones(7, np.float32)
    a.from_numpy(numbers)
    add(a, 1.0)
    np.testing.assert_array_equal(a.to_numpy(), numbers + np.float32(1))
    b = oc.ndarray(oc.f32, count)
    b.copy_from(a)
    assert b[count - 1] == numbers[-1] + np.float32(1)
    b.fill(2.5)
    b[3] = 7.0
    assert (b[2], b[3]) == (2.5, 7.0)

    @oc.kernel
    def number():
        for i, j in x:
            x[i, j] = 10 * i + j

    number()
    assert x[3, 4] == 34 and x.to_numpy().sum() == sum(10 * i + j for i in range(4) for j in range(5))
    add(y, 2.0)
    assert y.tolist() == [3.0] * 7


def test_results_prints_and_numbers(capfd):
    @oc.kernel
    def total(x: Floats) -> oc.f32:
        s = 0.0
        for i in x:
            s += x[i]
        print("the sum is", s)
        return s

    @oc.kernel
    def several(x: Floats) -> oc.types.struct(n=oc.i32, v=oc.types.vector(3, oc.f32)):
        return oc.Struct(n=x.shape[0], v=oc.Vector([x[0], x[1], 5.0]))

    @oc.kernel
    def counted(n: oc.i32) -> oc.i32:
        found = 0
        for i in range(n):
            if i % 3 == 0:
                found += 1
        last = 0
        for i in range(found):
            oc.atomic_max(last, i)
        return last

    a = oc.ndarray(oc.f32, 1000)
    a.fill(0.5)
    assert [total(a) for _ in range(3)] == [500.0] * 3
    assert counted(100) == 33


def test_checks_are_told_with_their_line(fresh_session):
    oc.init(arch=getattr(oc, fresh_session), device_process=True, debug=True, log_level="error")

    @oc.kernel
    def check(x: Floats, limit: oc.f32):
        for i in x:
            assert x[i] < limit, f"element {i} is {x[i]:.1f}"

    a = oc.ndarray(oc.f32, 100)
    a[41] = 3.0
    check(a, 5.0)
    with pytest.raises(oc.OctantsAssertionError, match=r"element 41 is 3\.0"):
        check(a, 2.0)
    check(a, 5.0)
    assert a[41] == 3.0


def test_a_process_ends_with_its_session(process):
    a = oc.ndarray(oc.f32, 10)
    oc.reset()
    del a
    end = time.monotonic() + 20
    while process in children() and time.monotonic() < end:
        time.sleep(0.05)
    assert process not in children()


def test_a_process_that_is_gone_loses_the_session_alone(process, fresh_session):
    a = oc.ndarray(oc.f32, 10)
    add(a, 1.0)
    oc.sync()
    os.kill(process, signal.SIGKILL)
    for use in (lambda: (add(a, 1.0), oc.sync()), a.to_numpy, lambda: a[0]):
        with pytest.raises(oc.OctantsRuntimeError, match="is gone"):
            use()
    oc.init(arch=getattr(oc, fresh_session), device_process=True, log_level="error")
    b = oc.ndarray(oc.f32, 10)
    add(b, 2.0)
    assert b[9] == 2.0


def test_what_cannot_be_another_process_is_refused():
    for arch in (oc.cpu, oc.reference):
        with pytest.raises(RuntimeError, match="this process' own device"):
            oc.init(arch=arch, device_process=True, enable_fallback=False)
