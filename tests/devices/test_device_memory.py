"""Devices with memory of their own: what the host copies, when it waits, and when it learns of errors."""

import threading

import numpy as np
import pytest

import octants as oc

pytestmark = pytest.mark.device_memory

Floats = oc.types.ndarray(dtype=oc.f32, ndim=1)


@oc.kernel
def add(x: Floats, value: oc.f32):
    for i in x:
        x[i] += value


def test_there_are_no_views_without_a_copy():
    a, x = oc.ndarray(oc.f32, 4), oc.field(oc.f32, shape=4)
    for refused in (a, x):
        with pytest.raises(ValueError, match="Zero-copy not available"):
            refused.to_numpy(copy=False)
        copied = refused.to_numpy(copy=None)
        copied[:] = 1
        assert refused.to_numpy().tolist() == [0, 0, 0, 0]


def test_launches_and_accesses_of_elements_keep_their_order():
    a = oc.ndarray(oc.f32, 1000)
    for step in range(50):
        add(a, 1.0)
        assert a[step] == step + 1
        a[step] = step
    expected = np.full(1000, 50.0)
    expected[:50] = 49.0
    assert a.to_numpy().tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", [oc.i8, oc.u16, oc.i32, oc.u64, oc.f16, oc.f32, oc.f64], ids=str)
def test_elements_of_every_width(dtype):
    a, x = oc.ndarray(dtype, (3, 5)), oc.field(dtype, shape=(3, 5))
    for made in (a, x):
        made[2, 3], made[2, 4], made[0, 0] = 7, 8, 9
        assert (made[2, 3], made[2, 4], made[0, 0], made[1, 1]) == (7, 8, 9, 0)
        assert made.to_numpy().sum() == 24


@pytest.mark.parametrize("size", [1, 1023, (1 << 16) + 1, (1 << 22) + 3])
def test_copies_of_any_size_arrive_whole(size):
    numbers = np.random.default_rng(size).random(size, dtype=np.float32)
    a = oc.ndarray(oc.f32, size)
    a.from_numpy(numbers)
    np.testing.assert_array_equal(a.to_numpy(), numbers)
    b = oc.ndarray(oc.f32, size)
    b.copy_from(a)
    np.testing.assert_array_equal(b.to_numpy(), numbers)
    x = oc.field(oc.f32, shape=size)
    x.from_numpy(numbers)
    np.testing.assert_array_equal(x.to_numpy(), numbers)


def test_the_host_may_change_an_array_after_it_was_copied_from():
    numbers = np.ones(1 << 20, np.float32)
    a = oc.ndarray(oc.f32, 1 << 20)
    for _ in range(5):
        a.from_numpy(numbers)
        numbers += 1
    assert (a.to_numpy() == 5).all()


def test_arrays_of_numpy_come_back_when_the_call_returns():
    x, y = np.zeros(10_000, np.float32), np.zeros(7, np.float32)
    for step in range(3):
        add(x, 1.0)
        assert (x == step + 1).all()
    add(y, 2.0)
    assert y.tolist() == [2.0] * 7


def test_one_array_of_numpy_as_two_arguments():
    @oc.kernel
    def both(x: Floats, y: Floats):
        for i in x:
            x[i] += 1.0
        for i in y:
            y[i] *= 2.0

    x = np.ones(100, np.float32)
    both(x, x)
    assert (x == 4).all()


def test_an_error_is_told_at_the_latest_when_the_host_waits():
    oc.init(arch=oc.cfg.arch, debug=True, log_level="error")

    @oc.kernel
    def check(x: Floats, limit: oc.f32):
        for i in x:
            assert x[i] < limit, f"element {i} is {x[i]:.1f}"

    a = oc.ndarray(oc.f32, 100)
    a[41] = 3.0
    check(a, 5.0)
    oc.sync()
    with pytest.raises(oc.OctantsAssertionError, match=r"element 41 is 3\.0") as caught:
        check(a, 2.0)
        oc.sync()
    assert "check" in str(caught.value) and "test_device_memory.py" in str(caught.value)
    # It is told once, and the session goes on.
    oc.sync()
    check(a, 5.0)
    add(a, 1.0)
    assert a[41] == 4.0


def test_an_error_is_told_before_a_result_is_read():
    oc.init(arch=oc.cfg.arch, debug=True, log_level="error")

    @oc.kernel
    def store(x: Floats, at: oc.i32):
        x[at] = 1.0

    a = oc.ndarray(oc.f32, 10)
    for read in (lambda: a[0], a.to_numpy, lambda: add(np.zeros(3, np.float32), 1.0)):
        with pytest.raises(oc.OctantsAssertionError, match="out of bounds"):
            store(a, 10)
            read()
        assert a[0] == 0


def test_memory_is_given_back_when_nothing_refers_to_it():
    runtime = oc._session.runtime
    before = runtime.live_bytes
    for _ in range(200):
        a = oc.ndarray(oc.f32, 1000)
        add(a, 1.0)
    assert runtime.live_bytes <= before + 2 * 4000
    del a
    oc.sync()
    assert runtime.live_bytes == before


def test_threads_wait_for_what_they_launched_themselves():
    failures = []

    def work(n):
        try:
            a, x = oc.ndarray(oc.f32, 10_000), np.full(100, n, np.float32)
            for step in range(20):
                add(a, float(n))
                add(x, 1.0)
                assert a[step] == n * (step + 1) and (x == n + step + 1).all()
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
