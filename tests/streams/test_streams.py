"""Streams and events, on every device: lifetime, handles, and what is refused.

What a later step reads is made slowly, so that a missing order shows. On devices whose only queue is the default one all of it is in
program order, and the same calls are accepted and refused.
"""

import gc

import numpy as np
import pytest
from devices import INTERPRETED
from stream_kernels import CONCURRENT, Held, add_one, nothing, produce, produced, size

import octants as oc

pytestmark = pytest.mark.host_access


# ---- lifetime --------------------------------------------------------------------------------------------------------


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
    # Each stream has an array of its own: the events order them before the default stream, not among themselves.
    arrays = [oc.ndarray(oc.i32, n) for _ in range(4)]
    for begin, a in enumerate(arrays):
        s = oc.create_stream()
        produce(a, begin, steps, qd_stream=s)
        e = oc.create_event()
        e.record(s)
        e.wait()
        del s, e
    gc.collect()
    for begin, a in enumerate(arrays):
        assert (a.to_numpy() == produced(n, begin, steps)).all()
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


# ---- handles ---------------------------------------------------------------------------------------------------------


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


#: With a name of its own where the text of the object has its address, which differs from one run to the next.
NO_STREAMS = [3, 0, "s", 1.5, [], pytest.param(object(), id="object()"), True, oc.Stream, np.int64(0)]


@pytest.mark.parametrize("wrong", NO_STREAMS, ids=repr)
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
