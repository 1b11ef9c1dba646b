"""Asking about streams, dropping them, and waiting for one while another is busy."""

import gc
import threading
import time

import pytest

import octants as oc

pytestmark = pytest.mark.host_devices(
    "loops of more iterations than can be counted fail in a queue of the host's threads"
)

#: Serial iterations that take about a second, and some milliseconds.
LONG, SHORT = 400_000_000, 2_000_000


def busy_kernel():
    @oc.kernel
    def busy(out: oc.types.ndarray(ndim=1), count: oc.i32):
        oc.loop_config(serialize=True)
        for i in range(count):
            out[0] = (out[0] * 1664525 + i) ^ i

    return busy


def passed(event, stream):
    event.record(stream)
    return event


@pytest.fixture
def one_thread():
    oc.init(arch=oc.cfg.arch, cpu_max_num_threads=1, log_level="error")
    if oc.cfg.arch != oc.cpu:
        pytest.skip("it has no queues")


@pytest.fixture
def two_threads():
    oc.init(arch=oc.cfg.arch, cpu_max_num_threads=2, log_level="error")
    if oc.cfg.arch != oc.cpu:
        pytest.skip("it has no queues")


def test_a_failure_that_nobody_was_told_of_is_no_answer(one_thread):
    count, out = oc.ndarray(oc.i32, (1,)), oc.ndarray(oc.i32, (1,))
    count.fill(2**31 - 1)
    busy = busy_kernel()
    busy(out, 1)

    @oc.kernel
    def too_many(n: oc.types.ndarray(ndim=1), out: oc.types.ndarray(ndim=1)):
        for i, j, k in oc.ndrange(n[0], n[0], n[0]):
            out[0] = 1

    stream = oc.create_stream()
    busy(out, SHORT * 20, qd_stream=stream)
    too_many(count, out, qd_stream=stream)
    failed = passed(oc.create_event(), stream)
    busy(out, LONG, qd_stream=stream)
    done = passed(oc.create_event(), stream)
    while not failed.query():
        time.sleep(1e-3)
    # The code that runs, and the stream that runs it: neither goes before its work is over, and nobody waits.
    del busy, stream
    gc.collect()
    assert not done.query()
    with pytest.raises(RuntimeError, match="more iterations than 63 bits"):
        done.synchronize()
    assert done.query()


def test_what_is_waited_for_runs_beside_a_busy_stream(one_thread):
    out, other = oc.ndarray(oc.i32, (1,)), oc.ndarray(oc.i32, (16,))
    busy = busy_kernel()

    @oc.kernel
    def add(a: oc.types.ndarray(ndim=1)):
        for i in a:
            a[i] += 1

    busy(out, 1)
    add(other)
    first, second = oc.create_stream(), oc.create_stream()
    busy(out, LONG, qd_stream=first)
    done = passed(oc.create_event(), first)
    event = oc.create_event()
    for n in range(3):
        add(other, qd_stream=second)
        if n == 0:
            second.synchronize()
        elif n == 1:
            passed(event, second).synchronize()
        assert other.to_numpy().tolist() == [n + 2] * 16
    assert not done.query()
    done.synchronize()


@pytest.mark.parametrize("wait", ["synchronize", "read", "result", "sync"])
def test_a_wait_is_not_held_up_by_what_others_launch_meanwhile(two_threads, wait):
    """A thread keeps the stream busy; who waits for it comes back when what it was told before is done."""
    work, out = oc.ndarray(oc.i32, 1), oc.ndarray(oc.i32, 16)

    @oc.kernel
    def fill(out: oc.types.ndarray(oc.i32, 1)):
        for i in out:
            out[i] = 5

    @oc.kernel
    def first(out: oc.types.ndarray(oc.i32, 1)) -> oc.i32:
        return out[0]

    busy, stream = busy_kernel(), oc.create_stream()
    busy(work, 1, qd_stream=stream)
    fill(out, qd_stream=stream)
    assert first(out, qd_stream=stream) == 5
    over, ahead = threading.Event(), []

    def keep_busy():
        # A few launches ahead of the stream, whatever a wait does to it.
        while not over.is_set():
            busy(work, SHORT, qd_stream=stream)
            ahead.append(oc.create_event())
            ahead[-1].record(stream)
            if len(ahead) > 8:
                ahead.pop(0).synchronize()

    fill(out, qd_stream=stream)
    launcher = threading.Thread(target=keep_busy)
    gives_up = threading.Timer(10, over.set)
    launcher.start(), gives_up.start()
    try:
        while len(ahead) < 4:
            time.sleep(0.001)
        if wait == "synchronize":
            stream.synchronize()
        elif wait == "sync":
            oc.sync()
        else:
            value = out.to_numpy()[0] if wait == "read" else first(out, qd_stream=stream)
            assert value == 5
        assert not over.is_set()
    finally:
        over.set(), gives_up.cancel(), launcher.join()
