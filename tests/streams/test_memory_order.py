"""Memory between streams, threads and other libraries: nothing old is read, nothing is lost, and who has nothing to do with a busy stream does not wait for it."""

import ctypes
import gc
import signal
import threading
import time

import numpy as np
import pytest
from stream_kernels import CONCURRENT, Held, IntArray, add_one, produce, produced

import octants as oc

pytestmark = pytest.mark.host_access

RealArray = oc.types.ndarray(dtype=oc.f32, ndim=1, needs_grad=True)


@oc.kernel
def fill_slowly(a: IntArray, times: oc.i32):
    for _ in range(1):
        for t in range(times):
            for i in range(1 << 20):
                a[i] = a[i] * 3 + t


class Busy(Held):
    """Likewise, also the default stream of a GPU, for about half a second; the stream may be gone at the end."""

    def __init__(self, stream=None):
        super().__init__(stream, steps=200_000_000)

    def __exit__(self, *_):
        self.done.synchronize()


class Alarm(Exception):
    pass


@pytest.fixture
def alarm():
    def ring(*_):
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def steps_of(arch):
    return {"cuda": 200_000_000, "cpu": 100_000_000}.get(arch, 1000)


def test_a_read_after_an_interrupted_one_gives_no_old_data(arch, alarm):
    if arch not in CONCURRENT:
        pytest.skip("work is over when it was told")
    a, one, two = oc.ndarray(oc.i32, 1), oc.create_stream(), oc.create_stream()
    produce(a, 0, 1)
    produce(a, 7, steps_of(arch), qd_stream=one)
    try:
        alarm(0.05)
        a.to_numpy(qd_stream=two)
    except Alarm:
        pass
    alarm(0)
    # The kernel ends with whatever it makes of 7 by as many steps; until then there is what one step made of 0.
    seen = a.to_numpy().copy()
    oc.sync(all=True)
    assert seen == a.to_numpy()
    assert seen != produced(1, 0, 1)


def test_two_threads_that_read_at_once_both_wait(arch):
    if arch not in CONCURRENT:
        pytest.skip("work is over when it was told")
    a, one, two = oc.ndarray(oc.i32, 1), oc.create_stream(), oc.create_stream()
    produce(a, 0, 1)
    produce(a, 7, steps_of(arch), qd_stream=one)
    seen = []
    readers = [threading.Thread(target=lambda: seen.append(a.to_numpy(qd_stream=two).copy()))]
    readers[0].start()
    time.sleep(0.05)
    seen.append(a.to_numpy().copy())
    readers[0].join()
    oc.sync(all=True)
    assert seen == [a.to_numpy()] * 2
    assert seen[0] != produced(1, 0, 1)


def test_a_copy_into_one_field_leaves_its_neighbours_alone(arch):
    """Members of one cell, which two threads write at the same time."""
    n = 20_000
    x, y = oc.field(oc.i32), oc.field(oc.i32)
    oc.root.dense(oc.i, n).place(x, y)
    over = threading.Event()

    def write_x():
        values = np.arange(n, dtype=np.int32)
        while not over.is_set():
            x.from_numpy(values)

    writer = threading.Thread(target=write_x)
    writer.start()
    try:
        end = time.monotonic() + 1.5
        round_ = 0
        while time.monotonic() < end:
            round_ += 1
            y.from_numpy(np.full(n, round_, np.int32))
            for _ in range(3):
                assert (y.to_numpy() == round_).all()
    finally:
        over.set()
        writer.join()
    assert (x.to_numpy() == np.arange(n)).all()


@pytest.mark.parametrize(
    "place",
    [
        lambda x, y: oc.root.dense(oc.ij, (24, 40)).place(x, y),
        lambda x, y: oc.root.dense(oc.ij, (6, 10)).dense(oc.ij, (4, 4)).place(x, y),
        lambda x, y: oc.root.dense(oc.j, 40).dense(oc.i, 24).place(x, y),
        lambda x, y: oc.root.dense(oc.i, 24).dense(oc.j, 40).place(x, y),
    ],
    ids=["rows", "blocks", "columns", "nested"],
)
@pytest.mark.parametrize("dtype", [oc.i8, oc.f32, oc.f64], ids=["i8", "f32", "f64"])
def test_copies_into_any_layout_write_the_elements_and_nothing_else(arch, place, dtype):
    x, y = oc.field(dtype), oc.field(dtype)
    place(x, y)
    shape = (24, 40)
    values = (np.arange(24 * 40) % 100).reshape(shape).astype(x.to_numpy().dtype)
    y.from_numpy(values[::-1].copy())
    x.from_numpy(values)
    assert (x.to_numpy() == values).all()
    assert (y.to_numpy() == values[::-1]).all()
    x.fill(3)
    assert (x.to_numpy() == 3).all()
    assert (y.to_numpy() == values[::-1]).all()


def test_a_busy_stream_keeps_no_memory_that_it_never_saw(arch):
    """Temporaries, each dropped before the next one is made."""
    if arch not in CONCURRENT:
        pytest.skip("nothing is busy when the host goes on")
    count, numbers = (40, 64 << 20) if arch == "cuda" else (16, 4 << 20)
    temporary = oc.ndarray(oc.i32, numbers)
    temporary.fill(1)
    del temporary
    gc.collect()

    def used():
        if arch == "cuda":
            free, total = ctypes.c_size_t(), ctypes.c_size_t()
            driver().cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
            return total.value - free.value
        with open("/proc/self/statm") as numbers:
            return int(numbers.read().split()[1]) * 4096

    with oc.create_stream() as stream, Busy(stream) as busy:
        before = used()
        for _ in range(count):
            temporary = oc.ndarray(oc.i32, numbers)
            temporary.fill(1)
            del temporary
            if arch == "cuda":
                oc.sync()
        grown = used() - before
        if busy.is_running():
            assert grown < 4 * 4 * numbers


def test_memory_that_a_stream_uses_is_kept_until_it_is_past_it(arch):
    if arch not in CONCURRENT:
        pytest.skip("nothing is busy when the host goes on")
    n = 1 << 16
    with oc.create_stream() as one, oc.create_stream() as two, Busy(one):
        a, b, total = oc.ndarray(oc.i32, n), oc.ndarray(oc.i32, n), oc.ndarray(oc.i32, n)
        a.fill(5)
        event = oc.create_event()
        # Behind the busy stream, and used by two.
        copy(a, b, qd_stream=one)
        event.record(one)
        event.wait(two)
        copy(b, total, qd_stream=two)
        del a, b
        others = [oc.ndarray(oc.i32, n) for _ in range(8)]
        for other in others:
            other.fill(9)
    assert (total.to_numpy() == 5).all()


def test_memory_that_a_stream_uses_is_kept_while_a_reset_waits_for_it(arch):
    if arch not in CONCURRENT:
        pytest.skip("streams that run beside the host")
    oc.init(arch=getattr(oc, arch), verbose=False)
    stream = oc.create_stream()
    arrays = [oc.ndarray(oc.i32, 1 << 20) for _ in range(8)]
    fill_slowly(arrays[0], 1, qd_stream=stream)
    stream.synchronize()
    for array in arrays:
        fill_slowly(array, 40, qd_stream=stream)
    reset = threading.Thread(target=oc.reset)
    reset.start()
    while reset.is_alive() and arrays:
        time.sleep(0.0005)
        arrays.pop(0)
    reset.join()


@oc.kernel
def copy(a: IntArray, b: IntArray):
    for i in a:
        b[i] = a[i]


@oc.kernel
def repeated(m: IntArray, x: RealArray, y: RealArray):
    for i in x:
        v = x[i]
        for _ in range(m[i]):
            v = oc.sin(v) * v
        y[i] = v


@oc.kernel
def overwriting(m: IntArray, x: RealArray, y: RealArray):
    for i in x:
        for _ in range(m[i]):
            x[i] = oc.sin(x[i]) * x[i]
        y[i] = x[i]


def ask_for_plan(arrays, stream):
    repeated.grad_plan(*arrays, qd_stream=stream)


def record_run(arrays, stream):
    loss = oc.ndarray(oc.f32, (), needs_grad=True)
    with oc.ad.Tape(loss):
        overwriting(*arrays, qd_stream=stream)


@pytest.mark.parametrize("begin", [ask_for_plan, record_run])
def test_arrays_of_an_interrupted_question_for_sizes_are_kept_for_its_kernel(arch, alarm, begin):
    """The kernel that computes how much a derivative keeps is in the queue of a busy stream, and its arrays are gone."""
    if arch not in CONCURRENT:
        pytest.skip("nothing is busy when the host goes on")
    n, stream = 1 << 22, oc.create_stream()
    arrays = oc.ndarray(oc.i32, n), *(oc.ndarray(oc.f32, n, needs_grad=True) for _ in range(2))
    begin(arrays, stream)
    stream.synchronize()
    with Busy(stream) as busy:
        alarm(0.1)
        with pytest.raises(Alarm):
            begin(arrays, stream)
        del arrays
        gc.collect()
        assert busy.is_running()
    # The kernel reads arrays that are there: where they are not, the process ends.
    stream.synchronize()


# ---- GPUs ------------------------------------------------------------------------------------------------------------


def driver():
    library = ctypes.CDLL("libcuda.so.1")
    context = ctypes.c_void_p()
    assert library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert library.cuCtxSetCurrent(context) == 0
    return library


@pytest.fixture
def external_stream():
    """A stream that Octants did not make, in no order with the legacy one."""
    library, handle = driver(), ctypes.c_void_p()
    assert library.cuStreamCreate(ctypes.byref(handle), 1) == 0
    yield handle.value
    oc.sync(all=True)
    driver()
    assert library.cuStreamDestroy_v2(handle) == 0


@pytest.mark.cuda_only
def test_zeros_of_a_new_array_come_before_a_kernel_in_another_librarys_stream(external_stream):
    add_one(oc.ndarray(oc.i32, 1))
    stream = oc.Stream(external_stream)
    for n in (1 << 10, 1 << 20, 1 << 24):
        with Busy():
            a = oc.ndarray(oc.i32, n)
            add_one(a, qd_stream=stream)
            stream.synchronize()
            assert (a.to_numpy() == 1).all()


@pytest.mark.cuda_only
def test_an_array_of_before_is_used_in_another_librarys_stream_beside_a_busy_default_one(external_stream):
    a, stream = oc.ndarray(oc.i32, 1000), oc.Stream(external_stream)
    a.fill(4)
    with Busy() as busy:
        add_one(a, qd_stream=stream)
        stream.synchronize()
        assert busy.is_running()
    assert (a.to_numpy() == 5).all()


@pytest.mark.cuda_only
def test_the_host_reads_what_another_librarys_stream_wrote(external_stream):
    stream = oc.Stream(external_stream)
    a = oc.ndarray(oc.i32, 1)
    produce(a, 0, 1)
    produce(a, 7, 100_000_000, qd_stream=stream)
    seen = a.to_numpy().copy()
    stream.synchronize()
    assert seen == a.to_numpy() and seen != produced(1, 0, 1)


@pytest.mark.cuda_only
@pytest.mark.parametrize("busy_default", [True, False], ids=["default", "stream"])
def test_a_thousand_arrays_beside_a_busy_stream_cost_no_wait(busy_default):
    one, other = oc.create_stream(), oc.create_stream()
    warm = [oc.ndarray(oc.i32, 1000) for _ in range(2)]
    for a in warm:
        add_one(a, qd_stream=one)
    oc.sync(all=True)
    with Busy(None if busy_default else other) as busy:
        arrays = []
        for n in range(1000):
            a = oc.ndarray(oc.i32, 1000)
            add_one(a, qd_stream=one)
            if n % 2:
                arrays.append(a)
        one.synchronize()
        assert busy.is_running()
    assert all((a.to_numpy() == 1).all() for a in arrays)


@pytest.mark.cuda_only
def test_new_arrays_and_streams_make_no_stream_wait_for_the_default_one():
    a, one = oc.ndarray(oc.i32, 1000), oc.create_stream()
    add_one(a, qd_stream=one)
    oc.sync(all=True)
    with Busy() as busy:
        kept = [oc.ndarray(oc.i32, 1000), oc.create_stream()]
        add_one(a, qd_stream=one)
        add_one(a, qd_stream=one)
        one.synchronize()
        add_one(kept[0], qd_stream=kept[1])
        kept[1].synchronize()
        assert busy.is_running()
    assert (a.to_numpy() == 3).all() and (kept[0].to_numpy() == 1).all()


@pytest.mark.cuda_only
def test_a_small_copy_does_not_wait_for_chunks_behind_a_busy_stream():
    long, small, one = oc.ndarray(oc.i32, 64 << 18), oc.ndarray(oc.i32, 1000), oc.create_stream()
    values = np.arange(64 << 18, dtype=np.int32)
    two = oc.create_stream()
    long.from_numpy(values)
    small.from_numpy(values[:1000].copy(), qd_stream=two)
    oc.sync(all=True)
    with Busy(one) as busy:
        sender = threading.Thread(target=lambda: long.from_numpy(values + 1, qd_stream=one))
        sender.start()
        time.sleep(0.1)
        small.from_numpy(values[1000:2000].copy(), qd_stream=two)
        assert (small.to_numpy(qd_stream=two) == values[1000:2000]).all()
        assert busy.is_running()
        sender.join()
    assert (long.to_numpy() == values + 1).all()


@pytest.mark.cuda_only
def test_a_busy_default_stream_keeps_no_memory_that_it_never_saw():
    """Nor do copies in another stream wait for it, unless its kernels have used the array."""
    one, numbers = oc.create_stream(), 64 << 20
    warm = oc.ndarray(oc.i32, numbers)
    warm.fill(1, qd_stream=one)
    add_one(warm, qd_stream=one)
    warm.to_numpy(qd_stream=one)
    del warm
    oc.sync(all=True)

    def used():
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        driver().cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        return total.value - free.value

    with Busy() as busy:
        before = used()
        for n in range(20):
            temporary = oc.ndarray(oc.i32, numbers)
            temporary.fill(n, qd_stream=one)
            add_one(temporary, qd_stream=one)
            if n == 19:
                assert (temporary.to_numpy(qd_stream=one) == n + 1).all()
            del temporary
            one.synchronize()
        grown = used() - before
        assert busy.is_running()
    assert grown < 4 * 4 * numbers


def test_a_new_array_does_not_wait_for_one_that_a_busy_default_stream_has_yet_to_free(arch):
    """The memory of an array that was dropped behind a long kernel serves no other one that would have to wait for it."""
    if arch != "cuda":
        pytest.skip("the default stream's work is over when it was told")
    size, stream = 1 << 24, oc.create_stream()
    # There is a stream for the zeros of new memory, and code for what follows.
    add_one(oc.ndarray(oc.i32, size), qd_stream=stream)
    stream.synchronize()
    gone = oc.ndarray(oc.i32, size)
    with Busy() as busy:
        add_one(gone)
        del gone
        gc.collect()
        new = oc.ndarray(oc.i32, size)
        add_one(new, qd_stream=stream)
        stream.synchronize()
        assert busy.is_running()
    assert new[0] == 1
