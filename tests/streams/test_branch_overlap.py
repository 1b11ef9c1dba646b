"""Branches run at the same time whatever stands in them: loops with bounds of the device's, what gives cells up, their derivatives; from a cold cache and a
warm one.

Seen on the recorded timeline: the spans of tasks of two branches have a common time. Two branches that run in order never have one, however busy the
machine is.
"""

import json

import numpy as np
import pytest

import octants as oc

Reals = oc.types.ndarray(dtype=oc.f32, ndim=1)
Ints = oc.types.ndarray(dtype=oc.i32, ndim=1)


@oc.func
def walk(x, steps):
    """Takes a while, each step after the one before. Loops of one such iteration leave other threads idle."""
    v, done = x, 0
    while done < steps:
        v = v * 0.999 + 0.001
        done += 1
    return v


@oc.func
def long_steps(n):
    return 3_000_000 + n


def overlapped(name: str, tmp_path) -> bool:
    """Whether tasks of the kernel with this name have a common time on the timeline."""
    path = tmp_path / "trace.json"
    oc.profiler.export_trace(path)
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    spans = [
        (event["ts"], event["ts"] + event["dur"])
        for event in events
        if event["ph"] == "X" and event.get("cat") == "task" and name in event["name"]
    ]
    assert len(spans) >= 2, [event.get("name") for event in events]
    spans.sort()
    # Longer than rounding of the clocks.
    return any(later[0] + 1000 < earlier[1] for earlier, later in zip(spans, spans[1:], strict=False))


def check(call, name, tmp_path, attempts=3):
    """Once is enough: a thread of a busy machine may begin late."""
    for _ in range(attempts):
        oc.profiler.clear_kernel_profiler_info()
        call()
        oc.sync(all=True)
        if overlapped(name, tmp_path):
            return
    pytest.fail(f"branches of {name} ran one after the other {attempts} times")


@pytest.fixture
def profiled(fresh_session, monkeypatch):
    monkeypatch.delenv("OC_OFFLINE_CACHE_FILE_PATH", raising=False)

    def init(**options):
        oc.init(
            arch=getattr(oc, fresh_session),
            kernel_profiler=True,
            log_level="error",
            **({"cpu_max_num_threads": 2} if fresh_session == "cpu" else {}),
            **options,
        )

    init()
    return init


def test_branches_whose_bounds_the_device_computes(profiled, tmp_path):
    @oc.kernel
    def bounded(x: Reals, y: Reals, n: Ints):
        with oc.stream_parallel():
            n[0] = n[1] + 1
            for i in range(n[0]):
                x[i] = walk(x[i], long_steps(n[1]))
        with oc.stream_parallel():
            n[2] = n[3] + 1
            for i in range(n[2]):
                y[i] = walk(y[i], long_steps(n[3]))

    x, y, n = oc.ndarray(oc.f32, 4), oc.ndarray(oc.f32, 4), oc.ndarray(oc.i32, 4)
    check(lambda: bounded(x, y, n), "bounded", tmp_path)


def test_branches_that_give_cells_up(profiled, tmp_path):
    a, b, out = oc.field(oc.f32), oc.field(oc.f32), oc.field(oc.f32, shape=4)
    first, second = oc.root.pointer(oc.i, 4), oc.root.pointer(oc.i, 4)
    first.place(a)
    second.place(b)

    @oc.kernel
    def giving_up(n: oc.i32):
        with oc.stream_parallel():
            for i in range(4):
                a[i] = walk(1.0 * i, long_steps(n))
            for i in a:
                oc.deactivate(first, [i])
            for i in a:
                out[0] += a[i]
        with oc.stream_parallel():
            for i in range(4):
                b[i] = walk(2.0 * i, long_steps(n))
            for i in b:
                oc.deactivate(second, [i])
            for i in b:
                out[1] += b[i]

    check(lambda: giving_up(0), "giving_up", tmp_path)
    assert out.to_numpy().tolist() == [0, 0, 0, 0]


def test_branches_of_derivatives(profiled, tmp_path):
    steps = 2_000

    @oc.kernel
    def curved(x: Reals, y: Reals, n: oc.i32):
        with oc.stream_parallel():
            for i in range(1):
                v = x[i]
                for _ in range(n):
                    v = oc.sin(v) + 0.5 * v
                y[i] = v
        with oc.stream_parallel():
            for i in range(1, 2):
                v = x[i]
                for _ in range(n):
                    v = oc.cos(v) + 0.5 * v
                y[i] = v

    x = oc.ndarray(oc.f32, 2, needs_grad=True)
    y = oc.ndarray(oc.f32, 2, needs_grad=True)
    x.from_numpy(np.array([0.3, 0.5], np.float32))

    def backward():
        y.grad.fill(1.0)
        x.grad.fill(0.0)
        curved.grad(x, y, 100 * steps)

    check(backward, "curved", tmp_path)


@pytest.mark.parametrize("start", ["cold", "warm"])
def test_branches_of_a_kernel_that_was_kept(profiled, tmp_path, start):
    folder = tmp_path / "cache"
    options = {"offline_cache": True, "offline_cache_file_path": str(folder)}

    @oc.kernel
    def kept(x: Reals, y: Reals, n: oc.i32):
        with oc.stream_parallel():
            for i in range(1):
                x[i] = walk(x[i], long_steps(n))
        with oc.stream_parallel():
            for i in range(1):
                y[i] = walk(y[i], long_steps(n))

    if start == "warm":
        profiled(**options)
        kept(oc.ndarray(oc.f32, 1), oc.ndarray(oc.f32, 1), -2_999_000)
    profiled(**options)
    x, y = oc.ndarray(oc.f32, 1), oc.ndarray(oc.f32, 1)
    check(lambda: kept(x, y, 0), "kept", tmp_path)
