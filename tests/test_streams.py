"""Streams and events, on every device: lifetime, order, what the host's copies wait for, and what is refused.

What a later step reads is made slowly, so that a missing order shows. On devices whose only queue is the default one all of it is in
program order, and the same calls are accepted and refused.
"""

import gc
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import dataclass

import numpy as np
import pytest
from devices import INTERPRETED

import octants as oc

pytestmark = pytest.mark.host_access

IntArray = oc.types.ndarray(dtype=oc.i32, ndim=1)

#: Devices with several queues.
CONCURRENT = ("cpu", "cuda")


@oc.func
def slow(x, steps):
    """Many steps from ``x``; :func:`slowly` is the same for numpy."""
    v = x
    oc.loop_config(serialize=True)
    for _ in range(steps):
        v = v * 1664525 + 1013904223
    return v


def slowly(x, steps):
    v = np.atleast_1d(x).astype(np.uint32)
    for _ in range(steps):
        v = v * np.uint32(1664525) + np.uint32(1013904223)
    return v.astype(np.int32).reshape(np.shape(x))[()]


@pytest.fixture
def size(arch):
    """How many elements, and how many steps make one slow."""
    return (12, 20) if arch in INTERPRETED else (1000, 20000)


@oc.kernel
def produce(a: IntArray, begin: oc.i32, steps: oc.i32):
    for i in a:
        a[i] = slow(begin + i, steps)


@oc.kernel
def add_one(a: IntArray):
    for i in a:
        a[i] += 1


@oc.kernel
def add_to(a: IntArray, b: IntArray, plus: oc.i32):
    for i in a:
        b[i] = a[i] + plus


@oc.kernel
def nothing(a: IntArray):
    for i in a:
        a[i] = a[i]


def produced(n, begin, steps):
    return slowly(np.arange(begin, begin + n), steps)


# ---- lifetime -------------------------------------------------------------------------------------------------------------


def test_leaving_a_stream_waits_for_its_queue(arch, size):
    n, steps = size
    for round_ in range(5):
        a = oc.ndarray(oc.i32, n)
        view = a.to_numpy(copy=None)
        with oc.create_stream() as s:
            produce(a, round_, steps, qd_stream=s)
        seen = view if arch in ("cpu", "reference") else a.to_numpy()
        assert (seen == produced(n, round_, steps)).all()


def test_destroying_a_stream_waits_for_its_queue_and_the_second_time_does_nothing(arch, size):
    n, steps = size
    a, s = oc.ndarray(oc.i32, n), oc.create_stream()
    view = a.to_numpy(copy=None)
    produce(a, 3, steps, qd_stream=s)
    s.destroy()
    seen = view if arch in ("cpu", "reference") else a.to_numpy()
    assert (seen == produced(n, 3, steps)).all()
    s.destroy()
    with s:
        pass


def uses_of_a_stream(s):
    a, e, f = oc.ndarray(oc.i32, 3), oc.create_event(), oc.field(oc.i32, shape=3)
    b = oc.ndarray(oc.i32, 3)
    yield "launch", lambda: nothing(a, qd_stream=s)
    yield "record", lambda: e.record(s)
    yield "wait", lambda: e.wait(qd_stream=s)
    yield "fill", lambda: a.fill(1, qd_stream=s)
    yield "copy_from", lambda: a.copy_from(b, qd_stream=s)
    yield "to_numpy", lambda: a.to_numpy(qd_stream=s)
    yield "from_numpy", lambda: a.from_numpy(np.zeros(3, np.int32), qd_stream=s)
    yield "view", lambda: a[1:].to_numpy(qd_stream=s)
    yield "field fill", lambda: f.fill(1, qd_stream=s)
    yield "field copy_from", lambda: f.copy_from(f, qd_stream=s)
    yield "field to_numpy", lambda: f.to_numpy(qd_stream=s)
    yield "field from_numpy", lambda: f.from_numpy(np.zeros(3, np.int32), qd_stream=s)


def uses_of_an_event(e):
    yield "record", lambda: e.record()
    yield "wait", lambda: e.wait()
    yield "synchronize", lambda: e.synchronize()
    yield "query", lambda: e.query()
    yield "elapsed", lambda: e.elapsed(e)


def test_a_destroyed_stream_or_event_is_refused_by_name(arch):
    with oc.create_stream() as s, oc.create_event() as e:
        e.record(s)
    for name, use in [*uses_of_a_stream(s), ("synchronize", s.synchronize)]:
        with pytest.raises(RuntimeError, match="this stream was destroyed"):
            use()
            print(name)
    for name, use in uses_of_an_event(e):
        with pytest.raises(RuntimeError, match="this event was destroyed"):
            use()
            print(name)


def test_a_stream_or_event_of_a_session_that_was_reset_is_refused_by_name(arch):
    s, e = oc.create_stream(), oc.create_event()
    e.record(s)
    oc.init(arch=getattr(oc, arch), log_level="error")
    for name, use in [*uses_of_a_stream(s), ("synchronize", s.synchronize)]:
        with pytest.raises(RuntimeError, match="this stream belongs to a session that was reset"):
            use()
            print(name)
    for name, use in uses_of_an_event(e):
        with pytest.raises(RuntimeError, match="this event belongs to a session that was reset"):
            use()
            print(name)
    s.destroy()
    e.destroy()
    with s, e:
        pass


def test_old_handles_do_not_reach_a_new_session(arch):
    old = [(oc.create_stream(), oc.create_event()) for _ in range(3)]
    oc.init(arch=oc.reference, log_level="error")
    new = oc.create_stream()
    a = oc.ndarray(oc.i32, 4)
    del old
    gc.collect()
    add_one(a, qd_stream=new)
    assert a.to_numpy().tolist() == [1] * 4


def test_an_event_is_given_back_once_also_after_an_exception(arch):
    with pytest.raises(ZeroDivisionError), oc.create_event() as e:
        e.record()
        raise ZeroDivisionError
    with pytest.raises(RuntimeError, match="destroyed"):
        e.record()
    e.destroy()


def test_objects_that_are_dropped_say_nothing(arch, size, capfd):
    n, steps = size
    a = oc.ndarray(oc.i32, n)
    for begin in range(4):
        s = oc.create_stream()
        produce(a, begin, steps, qd_stream=s)
        e = oc.create_event()
        e.record(s)
        e.wait()
        del s, e
    gc.collect()
    assert (a.to_numpy() == produced(n, 3, steps)).all()
    oc.sync(all=True)
    assert capfd.readouterr() == ("", "")


def test_many_streams_and_events_come_and_go(arch):
    a = oc.ndarray(oc.i32, 8)
    for _ in range(20 if arch in INTERPRETED else 200):
        with oc.create_stream() as s, oc.create_event() as e:
            add_one(a, qd_stream=s)
            e.record(s)
            e.wait()
    assert a.to_numpy().tolist() == [20 if arch in INTERPRETED else 200] * 8


def test_sessions_come_and_go_with_work_in_flight(arch, size):
    n, steps = size
    for _ in range(5):
        oc.init(arch=getattr(oc, arch), log_level="error")
        a, s = oc.ndarray(oc.i32, n), oc.create_stream()
        produce(a, 0, steps, qd_stream=s)
        oc.reset()
        with pytest.raises(RuntimeError):
            s.synchronize()
    oc.init(arch=getattr(oc, arch), log_level="error")


# ---- handles --------------------------------------------------------------------------------------------------------------


def test_the_handle_0_is_the_default_stream(arch, size):
    n, steps = size
    a, default = oc.ndarray(oc.i32, n), oc.Stream(0)
    assert default.handle == 0 and isinstance(default, oc.Stream)
    with default:
        produce(a, 0, steps, qd_stream=default)
        default.synchronize()
    assert (a.to_numpy() == produced(n, 0, steps)).all()
    add_one(a)
    with pytest.raises(RuntimeError, match="this stream was destroyed"):
        add_one(a, qd_stream=default)


def test_waiting_for_the_default_stream_waits_for_no_other(arch):
    if arch not in CONCURRENT:
        pytest.skip("all streams are the default one")
    with oc.create_stream() as s:
        with Held(s) as held:
            oc.Stream(0).synchronize()
            oc.sync()
            assert held.is_running()
        s.synchronize()


def test_a_handle_of_our_own_is_the_same_stream(arch, size):
    n, steps = size
    a = oc.ndarray(oc.i32, n)
    with oc.create_stream() as s:
        assert (s.handle != 0) == (arch in CONCURRENT)
        same = oc.Stream(s.handle)
        assert same.handle == s.handle
        produce(a, 1, steps, qd_stream=s)
        add_one(a, qd_stream=same)
        same.destroy()
        add_one(a, qd_stream=s)
    assert (a.to_numpy() == produced(n, 1, steps) + 2).all()


class TorchStream:
    """What is known of a stream of torch."""

    def __init__(self, handle):
        self.cuda_stream = handle


class OtherStream:
    def __init__(self, handle):
        self.handle = handle

    def __cuda_stream__(self):
        return (0, self.handle)


@pytest.mark.parametrize("kind", [TorchStream, OtherStream])
def test_a_stream_of_another_library_is_taken_as_it_is(arch, size, kind):
    n, steps = size
    a = oc.ndarray(oc.i32, n)
    with oc.create_stream() as s:
        foreign = kind(s.handle)
        produce(a, 5, steps, qd_stream=foreign)
        add_one(a, qd_stream=oc.Stream(foreign))
        with oc.create_event() as e:
            e.record(foreign)
            e.wait()
        a.fill(3, qd_stream=foreign)
        assert a.to_numpy(qd_stream=foreign).tolist() == [3] * n
        assert oc.Stream(foreign).handle == s.handle


def test_a_device_refuses_streams_that_are_not_its_own(arch):
    if arch == "cuda":
        pytest.skip("it takes other libraries' streams")
    a = oc.ndarray(oc.i32, 3)
    with pytest.raises(RuntimeError, match="no stream of the session"):
        oc.Stream(12345)
    with pytest.raises(RuntimeError, match="no stream of the session"):
        add_one(a, qd_stream=TorchStream(12345))
    assert a.to_numpy().tolist() == [0] * 3


@pytest.mark.parametrize("wrong", [3, 0, "s", 1.5, [], object(), True, oc.Stream, np.int64(0)], ids=repr)
def test_what_is_no_stream_is_refused_before_anything_is_queued(arch, wrong):
    a, e, f = oc.ndarray(oc.i32, 3), oc.create_event(), oc.field(oc.i32, shape=3)
    for use in (
        lambda: add_one(a, qd_stream=wrong),
        lambda: add_one(a=a, qd_stream=wrong),
        lambda: e.record(wrong),
        lambda: e.wait(qd_stream=wrong),
        lambda: a.fill(1, qd_stream=wrong),
        lambda: a.copy_from(a, qd_stream=wrong),
        lambda: a.to_numpy(qd_stream=wrong),
        lambda: a.from_numpy(np.ones(3, np.int32), qd_stream=wrong),
        lambda: f.fill(1, qd_stream=wrong),
        lambda: f.to_numpy(qd_stream=wrong),
        lambda: f.from_numpy(np.ones(3, np.int32), qd_stream=wrong),
    ):
        with pytest.raises(TypeError, match="qd_stream"):
            use()
    assert a.to_numpy().tolist() == f.to_numpy().tolist() == [0] * 3


@pytest.mark.parametrize("wrong", [None, "s", 1.5, True, []], ids=repr)
def test_what_is_no_handle_is_refused(arch, wrong):
    with pytest.raises(TypeError, match="handle"):
        oc.Stream(wrong)


def test_handles_and_priorities_have_a_range(arch):
    with pytest.raises(ValueError, match="handle"):
        oc.Stream(-1)
    with pytest.raises(ValueError, match="handle"):
        oc.Stream(1 << 64)
    with pytest.raises(TypeError, match="priority"):
        oc.create_stream(priority="high")
    with pytest.raises(TypeError):
        oc.create_stream(1)
    a = oc.ndarray(oc.i32, 3)
    for priority in (-5, -1, 0, 1, 100):
        with oc.create_stream(priority=priority) as s:
            add_one(a, qd_stream=s)
    assert a.to_numpy().tolist() == [5] * 3


def test_public_names():
    for name in ("Stream", "Event", "create_stream", "create_event", "stream_parallel", "sync"):
        assert name in dir(oc)
    with oc.create_stream() as s, oc.create_event() as e:
        assert type(s) is oc.Stream and type(e) is oc.Event
        assert "Stream" in repr(s) and "Event" in repr(e)


# ---- order ----------------------------------------------------------------------------------------------------------------


class Held:
    """Keeps a stream busy for a while: from ``__enter__`` on, until about ``__exit__``."""

    def __init__(self, stream):
        self.stream = stream
        #: Some tenths of a second.
        self.steps = 40_000_000 if oc.cfg.arch is oc.cuda else 150_000_000
        self.done = oc.create_event()
        self.array = oc.ndarray(oc.i32, 1)
        produce(self.array, 0, 1)

    def __enter__(self):
        produce(self.array, 0, self.steps, qd_stream=self.stream)
        self.done.record(self.stream)
        return self

    def is_running(self):
        return not self.done.query()

    def __exit__(self, *_):
        self.stream.synchronize()
        assert self.done.query()


def test_work_on_a_stream_is_in_order(arch, size):
    n, steps = size
    a, b = oc.ndarray(oc.i32, n), oc.ndarray(oc.i32, n)
    with oc.create_stream() as s:
        for round_ in range(5):
            produce(a, round_, steps, qd_stream=s)
            add_to(a, b, round_, qd_stream=s)
    assert (b.to_numpy() == produced(n, 4, steps) + 4).all()


def test_an_event_orders_two_streams(arch, size):
    n, steps = size
    a, b = oc.ndarray(oc.i32, n), oc.ndarray(oc.i32, n)
    with oc.create_stream() as s, oc.create_stream() as t, oc.create_event() as e:
        for round_ in range(10):
            produce(a, round_, steps, qd_stream=s)
            e.record(s)
            e.wait(qd_stream=t)
            add_to(a, b, round_, qd_stream=t)
            e.record(t)
            e.wait(s)
            t.synchronize()
            assert (b.to_numpy() == produced(n, round_, steps) + round_).all()


def test_an_event_orders_the_default_stream_and_another(arch, size):
    n, steps = size
    a, b = oc.ndarray(oc.i32, n), oc.ndarray(oc.i32, n)
    with oc.create_stream() as s, oc.create_event() as e:
        for round_ in range(5):
            produce(a, round_, steps, qd_stream=s)
            e.record(s)
            e.wait()
            add_to(a, b, round_)
            e.record()
            e.wait(s)
            assert (b.to_numpy() == produced(n, round_, steps) + round_).all()


def test_an_event_can_be_recorded_anew_while_a_stream_waits_for_it(arch, size):
    n, steps = size
    a, b, c = (oc.ndarray(oc.i32, n) for _ in range(3))
    with oc.create_stream() as s, oc.create_stream() as t, oc.create_event() as e:
        produce(a, 0, steps, qd_stream=s)
        e.record(s)
        e.wait(t)
        e.record(t)
        add_to(a, b, 1, qd_stream=t)
        produce(c, 0, steps, qd_stream=s)
    assert (b.to_numpy() == produced(n, 0, steps) + 1).all()


def test_an_event_that_was_never_recorded_holds_nobody_up(arch):
    a = oc.ndarray(oc.i32, 4)
    with oc.create_stream() as s, oc.create_event() as e:
        assert e.query() is True
        e.wait()
        e.wait(s)
        e.synchronize()
        add_one(a, qd_stream=s)
    assert a.to_numpy().tolist() == [1] * 4


def test_the_host_does_not_wait_for_what_a_stream_waits_for(arch):
    if arch not in CONCURRENT:
        pytest.skip("all streams are the default one")
    a = oc.ndarray(oc.i32, 4)
    with oc.create_stream() as s, oc.create_stream() as t:
        with Held(s) as held:
            held.done.wait(t)
            add_one(a, qd_stream=t)
            assert held.is_running()
        t.synchronize()
    assert a.to_numpy().tolist() == [1] * 4


def test_query_tells_whether_a_recording_is_passed(arch):
    with oc.create_stream() as s, oc.create_event() as e:
        if arch in CONCURRENT:
            with Held(s):
                e.record(s)
                assert e.query() is False
        e.record(s)
        e.synchronize()
        assert e.query() is True


def test_elapsed_is_in_milliseconds_and_waits(arch):
    steps = 200 if arch in INTERPRETED else 4_000_000
    a = oc.ndarray(oc.i32, 1)
    produce(a, 0, 1)
    with oc.create_stream() as s, oc.create_event() as begin, oc.create_event() as end:
        with pytest.raises(RuntimeError, match="never recorded"):
            begin.elapsed(end)
        started = time.perf_counter()
        begin.record(s)
        produce(a, 0, steps, qd_stream=s)
        end.record(s)
        took = begin.elapsed(end)
        assert end.query()
        most = (time.perf_counter() - started) * 1e3
        assert 0 < took <= most * 1.1
        assert end.elapsed(begin) == pytest.approx(-took, rel=0.1)
        assert begin.elapsed(begin) == 0
        with pytest.raises(TypeError, match="event"):
            begin.elapsed(s)


def test_sync_waits_for_the_default_stream_and_all_for_every_one(arch):
    a = oc.ndarray(oc.i32, 4)
    with oc.create_stream() as s, oc.create_stream() as t:
        if arch not in CONCURRENT:
            add_one(a, qd_stream=s)
            oc.sync()
            oc.sync(all=True)
            assert a.to_numpy().tolist() == [1] * 4
            return
        with Held(s) as held:
            add_one(a, qd_stream=t)
            add_one(a)
            oc.sync()
            assert held.is_running()
            oc.sync(all=True)
            assert not held.is_running()


# ---- the host's copies ----------------------------------------------------------------------------------------------------


def host_reads(a):
    yield "to_numpy", lambda: a.to_numpy()
    yield "in place", lambda: a.to_numpy(copy=None).copy()
    yield "asarray", lambda: np.asarray(a).copy()
    yield "view", lambda: a[:].to_numpy()
    yield "elements", lambda: np.array([a[i] for i in range(a.shape[0])], np.int32)

    def copied():
        b = oc.ndarray(oc.i32, a.shape[0])
        b.copy_from(a)
        return b.to_numpy()

    yield "copy_from", copied


def test_the_host_reads_what_was_launched_before_on_whatever_stream(arch, size):
    n, steps = size
    n = min(n, 100)
    a = oc.ndarray(oc.i32, n)
    with oc.create_stream() as s:
        for begin, (name, read) in enumerate(host_reads(a)):
            produce(a, begin, steps, qd_stream=s)
            assert (read() == produced(n, begin, steps)).all(), name


def test_the_host_writes_after_what_was_launched_before(arch, size):
    n, steps = size
    a, b, zeros = oc.ndarray(oc.i32, n), oc.ndarray(oc.i32, n), np.zeros(n, np.int32)
    b.fill(7)

    def element():
        a[3] = 5

    expected = {"fill": [7] * n, "from_numpy": zeros, "copy_from": [7] * n}
    with oc.create_stream() as s:
        for name, write in (
            ("fill", lambda: a.fill(7)),
            ("from_numpy", lambda: a.from_numpy(zeros)),
            ("copy_from", lambda: a.copy_from(b)),
            ("element", element),
        ):
            produce(a, 0, steps, qd_stream=s)
            write()
            s.synchronize()
            if name == "element":
                correct = produced(n, 0, steps)
                correct[3] = 5
            else:
                correct = expected[name]
            assert (a.to_numpy() == correct).all(), name


def test_a_launch_on_a_stream_sees_what_the_host_wrote_before(arch):
    n = 16 if arch in INTERPRETED else 1 << 20
    a, b = oc.ndarray(oc.i32, n), oc.ndarray(oc.i32, n)
    with oc.create_stream() as s, oc.create_stream() as t:
        for round_ in range(5):
            a.fill(round_)
            add_to(a, b, 1, qd_stream=s)
            a.from_numpy(np.full(n, 10 * round_, np.int32))
            add_to(a, b, 2, qd_stream=t)
            t.synchronize()
            assert (b.to_numpy() == 10 * round_ + 2).all()


def test_copies_take_a_stream(arch, size):
    n, steps = size
    a, b = oc.ndarray(oc.i32, n), oc.ndarray(oc.i32, n)
    with oc.create_stream() as s, oc.create_stream() as t:
        produce(a, 2, steps, qd_stream=s)
        b.copy_from(a, qd_stream=s)
        assert (b.to_numpy(qd_stream=s) == produced(n, 2, steps)).all()
        produce(a, 3, steps, qd_stream=s)
        assert (a.to_numpy(qd_stream=t) == produced(n, 3, steps)).all()
        produce(a, 4, steps, qd_stream=s)
        a.fill(1, qd_stream=t)
        add_one(a, qd_stream=t)
        assert a.to_numpy().tolist() == [2] * n
        source = np.arange(n, dtype=np.int32)
        a.from_numpy(source, qd_stream=s)
        source[:] = -1
        add_one(a, qd_stream=s)
        assert a[1:].to_numpy(qd_stream=s).tolist() == list(range(2, n + 1))


def test_copies_of_fields_take_a_stream_and_wait_for_it(arch, size):
    n, steps = size
    n = min(n, 64)
    x = oc.field(oc.i32, shape=n)
    y = oc.field(oc.i32, shape=n)
    v = oc.Vector.field(2, oc.i32, shape=n)
    apart = oc.Vector.field(2, oc.i32)
    oc.root.dense(oc.i, n).place(apart.get_scalar_field(0))
    oc.root.dense(oc.i, n).place(apart.get_scalar_field(1))
    both = oc.Struct.field({"p": oc.i32, "q": oc.types.vector(2, oc.i32)}, shape=n)

    @oc.kernel
    def make(begin: oc.i32, steps: oc.i32):
        for i in x:
            x[i] = slow(begin + i, steps)
        for i in v:
            v[i] = [x[i] + 1, x[i] + 2]
        for i in range(n):
            apart[i] = [x[i] + 3, x[i] + 4]
        for i in both:
            both[i].p = x[i] + 5
            both[i].q = [x[i] + 6, x[i] + 7]

    def pair(first):
        return np.stack([base + first, base + first + 1], -1)

    with oc.create_stream() as s, oc.create_stream() as t:
        for begin, q in enumerate([None, s, t]):
            base = produced(n, begin, steps)
            make(begin, steps, qd_stream=s)
            assert (x.to_numpy(qd_stream=q) == base).all()
            make(begin, steps, qd_stream=s)
            assert (v.to_numpy(qd_stream=q) == pair(1)).all()
            make(begin, steps, qd_stream=s)
            assert (apart.to_numpy(qd_stream=q) == pair(3)).all()
            make(begin, steps, qd_stream=s)
            found = both.to_numpy(qd_stream=q)
            assert (found["p"] == base + 5).all() and (found["q"] == pair(6)).all()
            make(begin, steps, qd_stream=s)
            y.copy_from(x, qd_stream=q)
            assert (y.to_numpy(qd_stream=q) == base).all()
            make(begin, steps, qd_stream=s)
            assert x[n - 1] == base[n - 1] and both[0].p == base[0] + 5
            make(begin, steps, qd_stream=s)
            for one in (x, v, apart, both):
                one.fill(3, qd_stream=q)
            assert (x.to_numpy() == 3).all() and (apart.to_numpy() == 3).all() and (both.to_numpy()["q"] == 3).all()
            make(begin, steps, qd_stream=s)
            x.from_numpy(np.arange(n, dtype=np.int32), qd_stream=q)
            apart.from_numpy(np.zeros((n, 2), np.int32), qd_stream=q)
            assert x.to_numpy().tolist() == list(range(n)) and not apart.to_numpy(qd_stream=q).any()
            make(begin, steps, qd_stream=s)
            v[1] = [4, 5]
            x[2] = 9
            assert v[1][1] == 5 and x[2] == 9 and x[3] == base[3]
            shared = x.to_numpy(copy=None)
            assert shared[3] == base[3]


def test_a_read_does_not_wait_for_streams_that_use_other_arrays(arch):
    if arch not in CONCURRENT:
        pytest.skip("all streams are the default one")
    a, b = oc.ndarray(oc.i32, 4), oc.field(oc.i32, shape=4)

    @oc.kernel
    def both():
        for i in b:
            b[i] = 5

    with oc.create_stream() as s, oc.create_stream() as t:
        with Held(s) as held:
            add_one(a, qd_stream=t)
            both(qd_stream=t)
            assert a.to_numpy().tolist() == [1] * 4 and b.to_numpy().tolist() == [5] * 4
            a.fill(3)
            add_one(a)
            a.from_numpy(a.to_numpy())
            assert a[0] == 4 and b[1] == 5
            assert held.is_running()


def test_memory_comes_and_goes_without_waiting_for_other_streams(arch):
    if arch not in CONCURRENT:
        pytest.skip("all streams are the default one")
    with oc.create_stream() as s, oc.create_stream() as t:
        with Held(s) as held:
            for q in (t, None):
                a = oc.ndarray(oc.i32, 1000)
                add_one(a, qd_stream=q)
                del a
            gc.collect()
            b = oc.ndarray(oc.i32, 1000)
            add_one(b, qd_stream=t)
            assert b[3] == 1
            oc.sync()
            assert held.is_running()


def test_kernels_in_use_on_a_stream_can_be_dropped(arch, size):
    n, steps = size
    a, b = oc.ndarray(oc.i32, n), oc.ndarray(oc.i32, n)
    with oc.create_stream() as s, oc.create_stream() as t:
        for round_ in range(5):

            @oc.kernel
            def once(a: IntArray, steps: oc.i32):
                for i in a:
                    a[i] = slow(i + oc.static(round_), steps)  # noqa: B023

            once(a, steps, qd_stream=s)
            del once
            gc.collect()
            assert (a.to_numpy() == produced(n, round_, steps)).all()
        if arch in CONCURRENT:
            with Held(s) as held:

                @oc.kernel
                def short(a: IntArray):
                    for i in a:
                        a[i] = 4

                short(b, qd_stream=t)
                del short
                gc.collect()
                assert held.is_running()
            assert b.to_numpy().tolist() == [4] * n


def test_memory_in_use_on_a_stream_can_be_given_back(arch, size):
    n, steps = size
    kept = oc.ndarray(oc.i32, n)
    with oc.create_stream() as s:
        for begin in range(5):
            a = oc.ndarray(oc.i32, n)
            tree = oc.FieldsBuilder()
            x = oc.field(oc.i32)
            tree.dense(oc.i, n).place(x)
            placed = tree.finalize()

            @oc.kernel
            def through(to: IntArray):
                for i in x:
                    to[i] = x[i] + 1  # noqa: B023

            @oc.kernel
            def into(a: IntArray):
                for i in x:
                    x[i] = a[i]  # noqa: B023

            produce(a, begin, steps, qd_stream=s)
            into(a, qd_stream=s)
            through(kept, qd_stream=s)
            del a
            placed.destroy()
            others = [oc.ndarray(oc.i32, n) for _ in range(4)]
            for other in others:
                other.fill(-1)
            gc.collect()
            assert (kept.to_numpy() == produced(n, begin, steps) + 1).all()


# ---- launches -------------------------------------------------------------------------------------------------------------


def test_launches_of_one_kernel_have_arguments_of_their_own(arch, size):
    n, steps = size
    streams = [oc.create_stream() for _ in range(4)]
    arrays = [oc.ndarray(oc.i32, n) for _ in range(12)]
    for begin, a in enumerate(arrays):
        produce(a, 7 * begin, steps, qd_stream=streams[begin % 4])
    for begin, a in enumerate(arrays):
        assert (a.to_numpy() == produced(n, 7 * begin, steps)).all()
    for s in streams:
        s.destroy()


def test_arrays_of_numpy_are_there_when_the_call_returns(arch, size):
    n, steps = size
    with oc.create_stream() as s, oc.create_stream() as t:
        a = np.zeros(n, np.int32)
        produce(a, 4, steps, qd_stream=s)
        assert (a == produced(n, 4, steps)).all()
        unaligned = np.zeros(4 * n + 1, np.uint8)[1:].view(np.int32)
        produce(unaligned, 5, steps, qd_stream=t)
        assert (unaligned == produced(n, 5, steps)).all()
        with pytest.raises(ValueError, match="read-only"):
            a.flags.writeable = False
            add_one(a, qd_stream=s)


def test_a_result_is_that_of_its_launch(arch, size):
    n, steps = size

    @oc.kernel
    def sums(a: IntArray, begin: oc.i32, steps: oc.i32) -> oc.i64:
        total = oc.i64(0)
        for i in a:
            a[i] = slow(begin + i, steps)
        for i in a:
            total += a[i]
        return total

    arrays = [oc.ndarray(oc.i32, n) for _ in range(2)]
    with oc.create_stream() as s, oc.create_stream() as t:
        for begin in range(4):
            found = sums(arrays[begin % 2], begin, steps, qd_stream=(s, t)[begin % 2])
            assert found == produced(n, begin, steps).astype(np.int64).sum()


def test_prints_and_failures_are_told(arch, size, capsys):
    n, steps = size
    oc.init(arch=getattr(oc, arch), log_level="error", debug=True)

    @oc.kernel
    def say(a: IntArray, limit: oc.i32):
        for i in a:
            a[i] = i
        for i in a:
            assert a[i] < limit, "too large"
        oc.loop_config(serialize=True)
        for i in range(3):
            print("element", a[i])

    a = oc.ndarray(oc.i32, n)
    with oc.create_stream() as s:
        say(a, n, qd_stream=s)
        assert capsys.readouterr().out == "element 0\nelement 1\nelement 2\n"
        with pytest.raises(AssertionError, match="too large") as failure:
            say(a, 5, qd_stream=s)
        assert "say" in str(failure.value) and "assert a[i] < limit" in str(failure.value)
        say(a, n, qd_stream=s)
        assert capsys.readouterr().out.startswith("element 0\n")
        with pytest.raises(oc.OctantsAssertionError):
            outside(a, n, qd_stream=s)
        add_one(a, qd_stream=s)
    assert a.to_numpy().tolist() == list(range(1, n + 1))


@oc.kernel
def outside(a: IntArray, i: oc.i32):
    a[i] = 1


def test_loops_whose_bounds_another_task_computes(arch, size):
    n, steps = size

    @oc.kernel
    def bounded(a: IntArray, steps: oc.i32):
        end = slow(5, steps) * 0 + a.shape[0] - 2
        for i in range(end):
            a[i] = i + 1

    a = oc.ndarray(oc.i32, n)
    with oc.create_stream() as s:
        bounded(a, steps, qd_stream=s)
        expected = [*range(1, n - 1), 0, 0]
        assert a.to_numpy().tolist() == expected


def test_random_numbers_do_not_depend_on_streams(arch):
    n = 20 if arch in INTERPRETED else 1000

    @oc.kernel
    def draw(a: oc.types.ndarray(dtype=oc.f32, ndim=1)):
        for i in a:
            a[i] = oc.random()

    def all_draws(streams):
        oc.init(arch=getattr(oc, arch), log_level="error", random_seed=7)
        made = [oc.create_stream() for _ in range(streams)]
        arrays = [oc.ndarray(oc.f32, n) for _ in range(6)]
        for number, a in enumerate(arrays):
            draw(a, qd_stream=made[number % streams] if made else None)
        return np.stack([a.to_numpy() for a in arrays])

    in_order, overlapped = all_draws(0), all_draws(3)
    assert (in_order == overlapped).all()
    assert len(np.unique(overlapped)) > 0.99 * overlapped.size


@oc.data_oriented
class Counter:
    def __init__(self, n):
        self.a, self.f, self.step = oc.ndarray(oc.i32, n), oc.field(oc.i32, shape=n), 3

    @oc.kernel
    def count(self, scale: oc.template(), plus: oc.i32):
        for i in self.f:
            self.f[i] += scale * self.step + plus


@dataclass(frozen=True)
class Pair:
    a: IntArray
    b: IntArray


def test_the_keyword_is_no_argument(arch):
    @oc.kernel
    def from_pair(pair: Pair, plus: oc.i32):
        for i in pair.a:
            pair.b[i] = pair.a[i] + plus

    @oc.kernel
    def any_of(x: oc.template()):
        for i in x:
            x[i] += 1

    @oc.kernel
    def no_arguments() -> oc.i32:
        return 3

    @oc.kernel
    def named(qd_stream: oc.i32) -> oc.i32:
        return qd_stream + 1

    n = 5
    counter, pair = Counter(n), Pair(oc.ndarray(oc.i32, n), oc.ndarray(oc.i32, n))
    with oc.create_stream() as s:
        counter.count(2, 1, qd_stream=s)
        counter.count(scale=2, plus=1, qd_stream=s)
        assert counter.f.to_numpy().tolist() == [14] * n
        from_pair(pair, 4, qd_stream=s)
        from_pair(pair=pair, plus=6, qd_stream=s)
        assert pair.b.to_numpy().tolist() == [6] * n
        any_of(counter.f, qd_stream=s)
        any_of(x=counter.f, qd_stream=None)
        assert counter.f.to_numpy().tolist() == [16] * n
        assert no_arguments(qd_stream=s) == 3
        assert named(3) == named(qd_stream=3) == 4
        with pytest.raises(oc.OctantsSyntaxError, match="plus"):
            counter.count(2, qd_stream=s)
        with pytest.raises(oc.OctantsSyntaxError, match="stream"):
            counter.count(2, 1, stream=s)
    assert len(any_of.compile_statistics()) == 1


@oc.kernel
def halves(a: IntArray, b: IntArray, c: IntArray, steps: oc.i32):
    """Two branches that read what was made before, slowly."""
    with oc.stream_parallel():
        for i in a:
            b[i] = slow(a[i], steps)
    with oc.stream_parallel():
        for i in a:
            c[i] = slow(a[i] + 1, steps)
        for i in a:
            c[i] += 1


def test_branches_come_after_earlier_work_on_their_stream_and_before_later(arch, size):
    n, steps = size
    a, b, c, d = (oc.ndarray(oc.i32, n) for _ in range(4))
    with oc.create_stream() as s, oc.create_event() as e:
        for round_, q in enumerate([s, None] * 5):
            produce(a, round_, steps, qd_stream=q)
            halves(a, b, c, steps, qd_stream=q)
            add_to(b, d, 1, qd_stream=q)
            add_to(c, a, 2, qd_stream=q)
            made = produced(n, round_, steps)
            assert (d.to_numpy() == slowly(made, steps) + 1).all()
            assert (a.to_numpy() == slowly(made + 1, steps) + 3).all()
            e.record(q)
            e.wait(None if q else s)


def test_branches_on_several_streams_at_once(arch, size):
    n, steps = size
    streams = [oc.create_stream() for _ in range(3)]
    arrays = [[oc.ndarray(oc.i32, n) for _ in range(3)] for _ in streams]
    for round_ in range(4):
        for number, (s, (a, b, c)) in enumerate(zip(streams, arrays, strict=True)):
            produce(a, 10 * number + round_, steps, qd_stream=s)
            halves(a, b, c, steps, qd_stream=s)
    for number, (_, b, c) in enumerate(arrays):
        made = produced(n, 10 * number + 3, steps)
        assert (b.to_numpy() == slowly(made, steps)).all()
        assert (c.to_numpy() == slowly(made + 1, steps) + 1).all()
    for s in streams:
        s.destroy()


@oc.data_oriented
class Nested:
    """Reading a member launches the kernel that reads it, once, and one that has to be compiled."""

    def __init__(self):
        self.a, self.depth = oc.ndarray(oc.i32, 4), 0
        self.s, self.t = oc.create_stream(), oc.create_stream()

    @property
    def plus(self):
        if self.depth == 1:
            self.depth = 2

            @oc.kernel
            def other(a: IntArray):
                for i in a:
                    a[i] += 100

            other(self.a, qd_stream=self.t)
            self.add(self.a, 10, qd_stream=self.t)
            self.t.synchronize()
            self.depth = 0
        return 5

    @oc.kernel
    def add(self, a: IntArray, more: oc.i32):
        for i in a:
            a[i] += self.plus + more


def test_a_launch_on_the_way_of_another_one_disturbs_nothing(arch):
    nested = Nested()
    nested.add(nested.a, 1, qd_stream=nested.s)
    nested.s.synchronize()
    nested.depth = 1
    nested.add(nested.a, 2, qd_stream=nested.s)
    assert nested.depth == 0, "the member is read at each launch"
    assert nested.a.to_numpy().tolist() == [6 + 100 + 15 + 7] * 4


def test_views_of_arrays_are_waited_for(arch, size):
    n, steps = size

    @oc.kernel
    def part(v: oc.BufferView[oc.i32], steps: oc.i32):
        for i in range(v.size):
            v[i] = slow(i, steps)

    a = oc.ndarray(oc.i32, n)
    with oc.create_stream() as s:
        part(a[2:], steps, qd_stream=s)
        assert (a.to_numpy()[2:] == produced(n - 2, 0, steps)).all()


# ---- threads and the ends of programs -------------------------------------------------------------------------------------


def test_threads_launch_on_streams_of_their_own_and_shared_ones(arch):
    """Eight threads, four streams, thousands of small launches; every sum is checked."""
    rounds = 3 if arch in INTERPRETED else 400
    n, threads, streams = 16, 8, [oc.create_stream() for _ in range(4)]

    @oc.kernel
    def accumulate(a: IntArray, by: oc.i32):
        for i in a:
            a[i] += by

    @oc.kernel
    def total(a: IntArray) -> oc.i32:
        result = 0
        for i in a:
            result += a[i]
        return result

    failures = []
    barrier = threading.Barrier(threads)

    def work(number):
        try:
            own = [oc.ndarray(oc.i32, n) for _ in streams]
            event = oc.create_event()
            barrier.wait()
            for round_ in range(rounds):
                for a, s in zip(own, streams, strict=True):
                    accumulate(a, number + 1, qd_stream=s)
                if round_ % 50 == 0:
                    event.record(streams[round_ % 4])
                    event.wait(streams[(round_ + 1) % 4])
                    found = total(own[number % 4], qd_stream=streams[number % 4])
                    if found != n * (number + 1) * (round_ + 1):
                        failures.append((number, round_, found))
            for a in own:
                if (a.to_numpy() != rounds * (number + 1)).any():
                    failures.append((number, a.to_numpy()))
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    running = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for one in running:
        one.start()
    for one in running:
        one.join()
    assert failures == []
    for s in streams:
        s.destroy()


def test_a_stream_can_be_destroyed_while_others_use_it(arch, size):
    n, steps = size
    outcomes = []
    for _ in range(5):
        s = oc.create_stream()
        a = oc.ndarray(oc.i32, n)
        begun = threading.Event()

        def use(s=s, a=a, begun=begun):
            try:
                for _ in range(50):
                    add_one(a, qd_stream=s)
                    begun.set()
            except RuntimeError as error:
                outcomes.append(str(error))

        thread = threading.Thread(target=use)
        thread.start()
        begun.wait()
        s.destroy()
        thread.join()
        count = a.to_numpy()
        assert (count == count[0]).all() and 1 <= count[0] <= 50
    assert all("this stream was destroyed" in text for text in outcomes)


PRELUDE = """
import octants as oc, time, os, signal, threading, sys
oc.init(arch=ARCH, log_level="error")

IntArray = oc.types.ndarray(dtype=oc.i32, ndim=1)

@oc.kernel
def endless(a: IntArray):
    for i in a:
        while a[i] == 0:
            a[i] = a[i] * 2

@oc.kernel
def long(a: IntArray, steps: oc.i32):
    for i in a:
        v = i
        for _ in range(steps):
            v = v * 1664525 + 1013904223
        a[i] = v

a = oc.ndarray(oc.i32, 4)
s = oc.create_stream()
"""


def run(tmp_path, arch, text, limit=60):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PRELUDE + textwrap.dedent(text)).replace("ARCH", f"oc.{arch}"))
    return subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=limit)


@pytest.mark.parametrize("ending", ["", "sys.exit(0)", "del s", "del a, s", "oc.reset()", "del long"])
def test_a_program_can_end_with_work_in_flight(tmp_path, arch, ending):
    steps = 100 if arch in INTERPRETED else 20_000_000
    done = run(tmp_path, arch, f"long(a, {steps}, qd_stream=s)\n{ending}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.host_devices("only a CPU ends work that nobody waits for")
@pytest.mark.parametrize("ending", ["", "oc.reset()", "oc.init(arch=oc.cpu, log_level='error')"])
def test_endless_work_ends_with_its_session(tmp_path, arch, ending):
    if arch not in CONCURRENT:
        pytest.skip("it runs when it is launched")
    done = run(tmp_path, arch, f"endless(a, qd_stream=s)\n{ending}")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "wait", ["s.synchronize()", "e.synchronize()", "e.wait()", "a.to_numpy()", "a.fill(1)", "a[0] = 1", "oc.sync(all=True)",
             "s.destroy()", "begin.elapsed(e)"],
)  # fmt: skip
@pytest.mark.host_devices("an endless kernel occupies a GPU for good")
def test_a_wait_for_a_stream_is_ended_by_ctrl_c(tmp_path, arch, wait):
    if arch not in CONCURRENT:
        pytest.skip("it runs when it is launched")
    done = run(
        tmp_path,
        arch,
        f"""
        def press():
            time.sleep(0.3)
            os.kill(os.getpid(), signal.SIGINT)
        begin, e = oc.create_event(), oc.create_event()
        begin.record(s)
        endless(a, qd_stream=s)
        e.record(s)
        threading.Thread(target=press).start()
        try:
            {wait}
        except KeyboardInterrupt:
            print("interrupted")
        """,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")


@pytest.mark.host_devices("an endless kernel occupies a GPU for good")
def test_a_launch_that_is_waited_for_is_ended_by_ctrl_c(tmp_path, arch):
    done = run(
        tmp_path,
        arch,
        """
        import numpy as np
        @oc.kernel
        def found(a: IntArray) -> oc.i32:
            for i in a:
                while a[i] == 0:
                    a[i] = a[i] * 2
            return a[0]
        def press():
            time.sleep(0.3)
            os.kill(os.getpid(), signal.SIGINT)
        for launch in (lambda: found(a, qd_stream=s), lambda: endless(np.zeros(4, np.int32), qd_stream=s)):
            threading.Thread(target=press).start()
            try:
                launch()
            except KeyboardInterrupt:
                print("interrupted")
        """,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n" * 2, "")
