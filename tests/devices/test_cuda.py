"""NVIDIA's GPUs: several of them, their memory, faults, tensors of torch and arrays of numba and cupy, and Ctrl-C."""

import os
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import octants as oc

pytestmark = pytest.mark.cuda_only

Floats = oc.types.ndarray(dtype=oc.f32, ndim=1)


@oc.kernel
def add(x: Floats, value: oc.f32):
    for i in x:
        x[i] += value


def run(folder, program: str, timeout=120) -> subprocess.CompletedProcess:
    path = folder / "program.py"
    head = "import octants as oc\noc.init(arch=oc.cuda, enable_fallback=False, log_level='error')\n"
    path.write_text(head + textwrap.dedent(program))
    return subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=timeout, env=os.environ)


def test_a_device_that_is_not_there_is_named():
    with pytest.raises(oc.OctantsDeviceUnavailable, match="99"):
        oc.init(arch=oc.cuda, device_id=99, enable_fallback=False)
    oc.init(arch=oc.cuda, device_id=0, enable_fallback=False, log_level="error")
    a = oc.ndarray(oc.f32, 3)
    add(a, 1.0)
    assert a[2] == 1


def test_memory_that_does_not_fit_is_refused_and_the_rest_stays_usable():
    a = oc.ndarray(oc.f32, 1000)
    with pytest.raises(MemoryError, match="out of memory"):
        oc.ndarray(oc.f32, (1 << 20, 1 << 20))
    kept = []
    with pytest.raises(MemoryError):
        for _ in range(1000):
            kept.append(oc.ndarray(oc.f32, 1 << 30))
    assert kept
    del kept
    again = oc.ndarray(oc.f32, 1 << 30)
    add(a, 1.0)
    add(again, 2.0)
    assert a[999] == 1 and again[(1 << 30) - 1] == 2


def test_more_elements_than_32_bits_of_bytes():
    a = oc.ndarray(oc.u8, (3 << 30) // 2)

    @oc.kernel
    def mark(a: oc.types.ndarray(dtype=oc.u8, ndim=1)):
        for i in a:
            a[i] = oc.cast(i % 251, oc.u8)

    mark(a)
    for i in (0, 1, 2**30 + 7, (3 << 30) // 2 - 1):
        assert a[i] == i % 251


def test_more_points_than_31_bits():
    rows, columns = 5, 429496731
    assert rows * columns == 2**31 + 7
    a = oc.ndarray(oc.u8, (rows, columns))

    @oc.kernel
    def write(a: oc.types.ndarray(dtype=oc.u8, ndim=2)):
        for i, j in a:
            a[i, j] = oc.cast((3 * i + j) % 251, oc.u8)

    @oc.kernel
    def total(a: oc.types.ndarray(dtype=oc.u8, ndim=2)) -> oc.i64:
        result = oc.i64(0)
        for i, j in a:
            result += oc.cast(a[i, j], oc.i64)
        return result

    @oc.kernel
    def count(a: oc.types.ndarray(dtype=oc.u8, ndim=2)):
        for i, j in oc.ndrange(a.shape[0], a.shape[1]):
            steps = 0
            while steps < (i + j) % 3:
                steps += 1
            a[i, j] = oc.cast(steps, oc.u8)

    def expected(factor, period):
        whole, rest = divmod(columns, period)
        ends = sum((factor * i + j) % period for i in range(rows) for j in range(rest))
        return rows * whole * (period * (period - 1) // 2) + ends

    write(a)
    assert total(a) == expected(3, 251)
    assert [a[i, columns - 1] for i in range(rows)] == [(3 * i + columns - 1) % 251 for i in range(rows)]
    count(a)
    assert total(a) == expected(1, 3)
    assert [a[i, columns - 2] for i in range(rows)] == [(i + columns - 2) % 3 for i in range(rows)]


#: Reaches far outside of an array, and looks at what comes after.
FAULT = """
@oc.kernel
def beyond(x: oc.types.ndarray(dtype=oc.f64, ndim=1), at: oc.i32):
    for i in range(64):
        x[at - i] = 1.0

a = oc.ndarray(oc.f64, 4)
for use in (lambda: (beyond(a, 2**31 - 1), oc.sync()), lambda: a.to_numpy(), lambda: oc.ndarray(oc.f32, 3).fill(1)):
    try:
        use()
        print("no error")
    except oc.OctantsRuntimeError as error:
        print("lost" if "lost" in str(error) else error)
"""

#: Which launch may have been the reason.
REASON = """
try:
    a.to_numpy()
except oc.OctantsRuntimeError as error:
    print(str(error))
"""

#: On the device of a new session.
WITHIN = """
b = oc.ndarray(oc.f64, 100)
beyond(b, 80)
print(b.to_numpy().sum())
"""


def test_a_fault_loses_the_session_and_a_new_one_works(tmp_path):
    again = "oc.init(arch=oc.cuda, enable_fallback=False, log_level='error')\n"
    done = run(tmp_path, f"{FAULT}\n{again}{WITHIN}\n{FAULT}\n{again}{WITHIN}\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["lost", "lost", "lost", "64.0"] * 2, done.stderr


def test_tensors_that_a_fault_has_lost_are_no_arguments_any_more(tmp_path):
    pytest.importorskip("torch")
    done = run(
        tmp_path,
        f"import torch\nt = torch.ones(100, dtype=torch.float64, device='cuda')\n{FAULT}"
        """
oc.init(arch=oc.cuda, enable_fallback=False, log_level="error")
try:
    beyond(t, 80)
except (ValueError, oc.OctantsRuntimeError) as error:
    print("opened by another process" in str(error))
""",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["lost", "lost", "lost", "True"], done.stderr


def test_a_fault_is_told_with_the_kernels_before_it_and_their_lines(tmp_path):
    done = run(tmp_path, FAULT + REASON)
    assert done.returncode == 0, done.stderr
    message = done.stdout
    assert "kernels launched before, the latest first: `beyond`" in message, message
    assert "program.py:" in message and "for i in range(64):" in message, message


def test_the_clock_tells_its_rate():
    @oc.kernel
    def spin(n: oc.i32) -> oc.i64:
        begin = oc.clock_counter()
        x = oc.i64(n)
        oc.loop_config(serialize=True)
        for k in range(n):
            x = x * 1664525 + k
        return oc.max(oc.clock_counter() - begin, x % 2)

    rate = oc.clock_freq_hz()
    assert isinstance(rate, float)
    spin(1)
    begin = time.perf_counter()
    ticks = spin(20_000_000)
    # The clock runs slower than it says when the device is idle or hot, and never faster by much.
    assert 0.2 * rate < ticks / (time.perf_counter() - begin) < 1.2 * rate

    @oc.kernel
    def in_a_kernel() -> oc.f64:
        return oc.clock_freq_hz()

    assert in_a_kernel() == rate


def test_ctrl_c_ends_the_wait_for_a_kernel(tmp_path):
    done = run(
        tmp_path,
        """
        import os, signal, threading, time

        @oc.kernel
        def spin(n: oc.i32) -> oc.i64:
            total = oc.i64(0)
            for i in range(64):
                x = oc.i64(i)
                for k in range(n):
                    x = x * 1664525 + k
                total += x
            return total

        spin(1)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            begin = time.perf_counter()
            while time.perf_counter() - begin < 30:
                spin(50_000_000)
            print("no interrupt")
        except KeyboardInterrupt:
            print("interrupted", time.perf_counter() - begin < 0.8)
        print(spin(1) == spin(1))
        """,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["interrupted True", "True"], done.stderr


def test_tensors_of_torch_are_used_in_place():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    x = torch.arange(1 << 20, dtype=torch.float32, device="cuda")
    expected = np.arange(1 << 20, dtype=np.float32)
    where = x.data_ptr()
    for _ in range(10):
        x.mul_(0.5)  # queued in torch's stream
        add(x, 3.0)
        expected = expected * np.float32(0.5) + np.float32(3)
    x.add_(1.0)
    assert x.data_ptr() == where
    np.testing.assert_array_equal(x.cpu().numpy(), expected + 1)


def test_tensors_keep_the_order_of_the_stream_that_torch_works_in():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x = torch.zeros(1 << 24, device="cuda")
        y = torch.ones(1 << 24, device="cuda")
        for _ in range(10):
            x.add_(y)
            add(x, 1.0)
            y.copy_(x)
    side.synchronize()
    # x doubles and gains one, each time.
    expected = 0.0
    seen = 1.0
    for _ in range(10):
        expected = expected + seen + 1.0
        seen = expected
    assert (x == expected).all()


def test_tensors_of_every_kind_and_shape():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")

    @oc.kernel
    def count(x: oc.types.ndarray()):
        for index in oc.grouped(x):
            x[index] += 1

    for dtype in (torch.int8, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64):
        for shape in ((7,), (3, 5), (2, 3, 4)):
            x = torch.ones(shape, dtype=dtype, device="cuda")
            count(x)
            assert (x == 2).all()
    flipped = torch.zeros(4, 6, device="cuda").t()
    count(flipped)
    assert (flipped == 1).all()
    spaced = torch.zeros(8, device="cuda")
    count(spaced[::2])
    assert spaced.tolist() == [1, 0] * 4
    x = torch.zeros(4)  # the host's
    count(x)
    assert x.tolist() == [1, 1, 1, 1]


def test_what_was_asked_for_is_what_runs():
    assert oc.cfg.arch is oc.cuda and oc._session.runtime.arch == "cuda"


def test_numba_looks_at_arrays_and_kernels_at_those_of_numba():
    cuda = pytest.importorskip("numba.cuda")
    if not cuda.is_available():
        pytest.skip("numba finds no GPU")
    x, field = oc.ndarray(oc.f32, 1000), oc.field(oc.f32, shape=1000)
    add(x, 1.5)
    field.fill(1.5)
    for own in (x, field):
        seen = cuda.as_cuda_array(own)
        assert (seen.copy_to_host() == 1.5).all()
        seen[10:20].copy_to_device(np.full(10, 4, np.float32))
        cuda.synchronize()
        assert own[9] == 1.5 and own[10] == 4 and own[19] == 4 and own[20] == 1.5
    theirs = cuda.to_device(np.arange(1000, dtype=np.float32))
    add(theirs, 2.0)
    oc.sync()
    assert (theirs.copy_to_host() == np.arange(1000) + 2).all()
    every = theirs[::2]
    add(every, 1.0)
    oc.sync()
    assert theirs.copy_to_host()[:4].tolist() == [3, 3, 5, 5]


def test_cupy_looks_at_arrays_and_kernels_at_those_of_cupy():
    cupy = pytest.importorskip("cupy")
    x, field = oc.ndarray(oc.f32, 1000), oc.field(oc.f32, shape=1000)
    add(x, 1.5)
    field.fill(1.5)
    for own in (x, field):
        for seen in (cupy.from_dlpack(own), cupy.asarray(own)):
            assert seen.shape == (1000,) and seen.dtype == np.float32
            assert (cupy.asnumpy(seen) == 1.5).all()
            seen[10:20] = 4
            cupy.cuda.get_current_stream().synchronize()
            assert own[9] == 1.5 and own[10] == 4 and own[19] == 4 and own[20] == 1.5
            own.fill(1.5)
    kept = cupy.from_dlpack(x)
    del x
    assert (cupy.asnumpy(kept) == 1.5).all()
    theirs = cupy.asarray(np.arange(1000, dtype=np.float32))
    add(theirs, 2.0)
    oc.sync()
    assert (cupy.asnumpy(theirs) == np.arange(1000) + 2).all()
    add(theirs[::2], 1.0)
    oc.sync()
    assert cupy.asnumpy(theirs)[:4].tolist() == [3, 3, 5, 5]
    with pytest.raises(ValueError, match=r"OC0802.*x"):
        add(theirs.astype(np.float64).reshape(10, 100), 1.0)


def test_what_cupy_wrote_in_its_own_stream_is_what_kernels_read():
    cupy = pytest.importorskip("cupy")
    busy = cupy.zeros(1 << 24, dtype=np.float32)
    stream = cupy.cuda.Stream(non_blocking=True)
    theirs = cupy.zeros(1 << 16, dtype=np.float32)
    x = oc.ndarray(oc.f32, 1 << 16)
    with stream:
        for _ in range(50):
            busy += 1
        theirs += busy[: 1 << 16]
        shared = cupy.from_dlpack(x)
        add(theirs, 2.0)
        shared += 1
    stream.synchronize()
    oc.sync()
    assert (cupy.asnumpy(theirs) == 52).all()
    add(x, 1.0)
    assert x[0] == 2 and x[(1 << 16) - 1] == 2
