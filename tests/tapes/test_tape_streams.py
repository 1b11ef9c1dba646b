"""Gradients whose loops have bounds in arrays, in streams: the device finds out how much they keep, and the host does not wait for it."""

import numpy as np
import pytest
from gradient_values import INTS, VEC, X, integers, made
from test_tape_memory import gated, steps, steps_in_order, steps_into_one_sum

import octants as oc

# Bounds that grow and shrink from launch to launch.
BOUNDS = ([3, 0, 8, 5], [40, 1, 2, 90], [1, 1, 1, 1], [0, 0, 0, 0], [300, 2, 0, 17], [3, 0, 8, 5])


@oc.kernel
def busy(y: VEC, n: oc.i32):
    for i in range(1):
        v = 0.5
        for k in range(n):
            v = oc.sin(v) + 0.1
        y[0] = v


def begin(arch, limit):
    """A session with this limit, or none."""
    oc.init(arch=getattr(oc, arch), log_level="error", **({} if limit is None else {"tape_memory_limit": limit}))


def begun(kernel, n, stream):
    """A gradient that was launched, and the array that gets it."""
    x, y, n = made(X), made(np.zeros(4)), integers(n)
    y.grad.from_numpy(np.arange(1.0, 5.0))
    kernel.grad(x, y, n, qd_stream=stream)
    return x, (y, n)


def expected(kernel, n):
    """By a session that waits for each launch."""
    x, y, n = made(X), made(np.zeros(4)), integers(n)
    y.grad.from_numpy(np.arange(1.0, 5.0))
    kernel.grad(x, y, n)
    return x.grad.to_numpy()


@pytest.fixture
def streamed(arch):
    if arch not in ("cpu", "cuda"):
        pytest.skip(f"streams of {arch} are over when they were told")
    return arch


@pytest.mark.parametrize("limit", [None, 2400, 1 << 16])
@pytest.mark.parametrize("kernel", [steps, gated, steps_in_order, steps_into_one_sum])
def test_bounds_grow_and_shrink_between_launches(streamed, kernel, limit):
    oc.init(arch=oc.reference, log_level="error")
    values = [expected(kernel, n) for n in BOUNDS]
    # One iteration keeps at most 2400 bytes of reals; those of some kernels keep integers, too.
    if limit == 2400 and kernel in (steps_in_order, steps_into_one_sum):
        limit = 8000
    begin(streamed, limit)
    stream = oc.create_stream()
    for _ in range(3):
        launched = [begun(kernel, n, stream) for n in BOUNDS]
        stream.synchronize()
        for (x, _), one in zip(launched, values, strict=True):
            np.testing.assert_allclose(x.grad.to_numpy(), one, rtol=1e-12)
    # In the default stream, too.
    launched = [begun(kernel, n, None) for n in BOUNDS]
    for (x, _), one in zip(launched, values, strict=True):
        np.testing.assert_allclose(x.grad.to_numpy(), one, rtol=1e-12)


@pytest.mark.parametrize("limit", [None, 1 << 16])
def test_streams_side_by_side(streamed, limit):
    oc.init(arch=oc.reference, log_level="error")
    values = [expected(steps, n) for n in BOUNDS]
    begin(streamed, limit)
    streams = [oc.create_stream() for _ in range(3)]
    launched = []
    for turn in range(10):
        for number, stream in enumerate(streams):
            which = (turn + number) % len(BOUNDS)
            launched.append((begun(steps, BOUNDS[which], stream), values[which]))
    for stream in streams:
        stream.synchronize()
    for (x, _), one in launched:
        np.testing.assert_allclose(x.grad.to_numpy(), one, rtol=1e-12)


@pytest.mark.parametrize("limit", [None, 1 << 16])
def test_the_host_does_not_wait(streamed, limit):
    """Behind a kernel that takes long, the gradient is told and not yet computed when the call is over."""
    begin(streamed, limit)
    stream, told, y = oc.create_stream(), oc.create_event(), made(np.zeros(1))
    busy(y, 10, qd_stream=stream)
    if streamed == "cuda":
        # Its driver waits where code is loaded.
        begun(steps, BOUNDS[0], stream)[0].grad.to_numpy()
    x, out, n = made(X), made(np.zeros(4)), integers(BOUNDS[0])
    out.grad.from_numpy(np.arange(1.0, 5.0))
    busy(y, 30_000_000 if streamed == "cpu" else 3_000_000, qd_stream=stream)
    steps.grad(x, out, n, qd_stream=stream)
    told.record(stream)
    assert not told.query()
    stream.synchronize()
    assert told.query()
    values = begun(steps, BOUNDS[0], None)[0].grad.to_numpy()
    np.testing.assert_allclose(x.grad.to_numpy(), values, rtol=1e-12)


@oc.kernel
def squared_in_place(x: VEC, steps: oc.i32):
    for i in x:
        for k in range(steps):
            x[i] = oc.sin(x[i]) + 0.125 * x[i]


def test_the_host_does_not_wait_for_what_a_kernel_overwrites(streamed):
    """The first run, and the way back, are told behind a kernel that takes long, and neither has begun when the call is over."""
    begin(streamed, None)
    stream, told, y = oc.create_stream(), oc.create_event(), made(np.zeros(1))
    busy(y, 10, qd_stream=stream)
    if streamed == "cuda":
        # Its driver waits where code is loaded.
        with oc.ad.Tape():
            squared_in_place(made(X), 3, qd_stream=stream)
        stream.synchronize()
    x = made(X)
    tape = oc.ad.Tape()
    with tape:
        busy(y, 30_000_000 if streamed == "cpu" else 3_000_000, qd_stream=stream)
        squared_in_place(x, 3, qd_stream=stream)
        told.record(stream)
        assert not told.query()
    stream.synchronize()
    value = np.array(X, dtype=np.float64)
    expected = np.arange(1.0, 5.0)
    for _ in range(3):
        expected, value = expected * (np.cos(value) + 0.125), np.sin(value) + 0.125 * value
    np.testing.assert_allclose(x.to_numpy(), value, rtol=1e-12)
    x.grad.from_numpy(np.arange(1.0, 5.0))
    tape.clear_gradients = False
    tape.grad()
    np.testing.assert_allclose(x.grad.to_numpy(), expected, rtol=1e-12)


def test_what_does_not_fit_is_told_by_who_waits_next(streamed):
    """Nobody waits for a launch in a stream."""
    oc.init(arch=getattr(oc, streamed), tape_memory_limit=799, log_level="error")
    stream = oc.create_stream()
    too_much = r"\[OC1110\].*keeps 800 bytes.*limit for all is 799"
    values = begun(steps, [1, 99, 2, 3], stream)[0].grad.to_numpy()
    for wait in (stream.synchronize, lambda: oc.sync(all=True)):
        kept = begun(steps, [1, 100, 2, 3], stream)
        with pytest.raises(oc.OctantsRuntimeError, match=too_much):
            wait()
        del kept
        # It is told once, and the session is as usable as before.
        stream.synchronize()
        np.testing.assert_allclose(begun(steps, [1, 99, 2, 3], stream)[0].grad.to_numpy(), values, rtol=1e-12)
    # Reading what was not computed tells it, too.
    x, _ = begun(steps, [1, 100, 2, 3], stream)
    with pytest.raises(oc.OctantsRuntimeError, match=too_much):
        x.grad.to_numpy()


@oc.kernel
def twice(x: VEC, y: VEC):
    for i in x:
        y[i] = 2.0 * x[i]


@oc.kernel
def slow(x: VEC, y: VEC, n: oc.i32):
    for i in x:
        v = x[i]
        for k in range(n):
            v = 0.5 * oc.sin(v) + x[i]
        y[i] = v


@oc.kernel
def add_up(y: VEC, loss: VEC):
    for i in y:
        loss[0] += y[i]


@pytest.mark.parametrize("first, second", [(0, 1), (1, 0), (1, 2)])
def test_the_way_back_has_the_order_of_the_calls_whichever_streams_they_are_in(streamed, first, second):
    """What the program waits for between its calls, nobody waits for on the way back."""
    oc.init(arch=getattr(oc, streamed), log_level="error")
    found = []
    for streams in ([None] * 3, [None, oc.create_stream(), oc.create_stream()]):
        x, y, z, loss = made(X), made(np.zeros(4)), made(np.zeros(4)), made([0.0])
        with oc.ad.Tape(loss):
            twice(x, y, qd_stream=streams[first])
            oc.sync(all=True)
            slow(y, z, 100_000, qd_stream=streams[second])
            oc.sync(all=True)
            add_up(z, loss, qd_stream=streams[first])
            oc.sync(all=True)
        found.append(x.grad.to_numpy())
    np.testing.assert_allclose(found[1], found[0])
