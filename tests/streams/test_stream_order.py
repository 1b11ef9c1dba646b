"""The order of work on streams, on every device: events, and what the host's copies wait for."""

import gc
import time

import numpy as np
import pytest
from devices import INTERPRETED
from stream_kernels import CONCURRENT, Held, IntArray, add_one, add_to, produce, produced, size, slow

import octants as oc

pytestmark = pytest.mark.host_access


# ---- order -----------------------------------------------------------------------------------------------------------


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


# ---- the host's copies -----------------------------------------------------------------------------------------------


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

    both()
    b.fill(0)
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

            @oc.kernel
            def short(a: IntArray):
                for i in a:
                    a[i] = 4

            short(oc.ndarray(oc.i32, 1))
            with Held(s) as held:
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
