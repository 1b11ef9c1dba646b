"""Branches that run at the same time, seen in a trace.

Four loops that keep a part of the device busy each: one after another, and as the branches of a fork. Writes the timeline of both; the
script `scripts/draw_timeline.py` makes a picture of it.
"""

import time

from command_line import options

import octants as oc

BRANCHES = 4


@oc.func
def spin(seed, steps):
    """Keeps a thread busy."""
    v = 1e-3 * seed
    for _ in range(steps):
        v = oc.sin(v) * 0.9 + 0.1
    return v


@oc.kernel
def one_after_another(x: oc.types.ndarray(dtype=oc.f32, ndim=2), steps: oc.i32):
    for branch in oc.static(range(BRANCHES)):
        for i in range(x.shape[1]):
            x[branch, i] = spin(i + branch, steps)


@oc.kernel
def side_by_side(x: oc.types.ndarray(dtype=oc.f32, ndim=2), steps: oc.i32):
    for branch in oc.static(range(BRANCHES)):
        with oc.stream_parallel():
            for i in range(x.shape[1]):
                x[branch, i] = spin(i + branch, steps)


def seconds(kernel, x, steps: int) -> float:
    """Of one launch, with the device idle before and after it."""
    oc.sync()
    start = time.perf_counter()
    kernel(x, steps)
    oc.sync()
    return time.perf_counter() - start


def main(out, size: int, steps: int) -> float:
    """Runs both, and gives how many times as fast the branches were. The trace has the last launch of each."""
    x = oc.ndarray(oc.f32, (BRANCHES, size))
    for kernel in (one_after_another, side_by_side):
        kernel(x, 1)
        seconds(kernel, x, steps)
    oc.profiler.clear_kernel_profiler_info()
    serial, forked = seconds(one_after_another, x, steps), seconds(side_by_side, x, steps)
    print(f"{BRANCHES} loops: one after another {serial * 1e3:.3f} ms, side by side {forked * 1e3:.3f} ms")
    print(f"side by side is {serial / forked:.2f} times as fast")
    out.mkdir(parents=True, exist_ok=True)
    oc.profiler.export_trace(out / "overlap.json")
    print(f"wrote {out / 'overlap.json'}")
    return serial / forked


if __name__ == "__main__":
    chosen = options(__doc__, smallest=1, size=1, steps=300_000, session={"kernel_profiler": True})
    main(chosen.out, chosen.size, chosen.steps)
