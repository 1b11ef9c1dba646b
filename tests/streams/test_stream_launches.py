"""Launches on streams, on every device: arguments, results, failures, threads, and programs that end meanwhile."""

import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import dataclass

import numpy as np
import pytest
from devices import INTERPRETED
from stream_kernels import CONCURRENT, IntArray, add_one, add_to, produce, produced, size, slow, slowly

import octants as oc

pytestmark = pytest.mark.host_access


# ---- launches --------------------------------------------------------------------------------------------------------


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
        s.synchronize()
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


# ---- threads and the ends of programs --------------------------------------------------------------------------------


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
