"""What a long rollout costs in bounded memory: `python benches/long_rollouts.py [--steps N] [--device cuda] [--write]`.

Two kernels for each step of 1024 pendulums. One program has a row for each step, and a plain tape; the other one updates its two arrays in place, with `memory=` at several sizes. A figure is
the time of the steps and of the way back, the least of some; the bytes of arrays and of what the tape keeps; and how many calls run again for each call.

`--write` leaves the table in `benches/results/long_rollouts_DEVICE.md`.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import octants as oc

RESULTS = Path(__file__).resolve().parent / "results"
ROUNDS, COUNT, STEP = 3, 1024, 1 / 1024

LINE, ROWS = oc.types.ndarray(dtype=oc.f32, ndim=1), oc.types.ndarray(dtype=oc.f32, ndim=2)


@oc.kernel
def kick(x: LINE, v: LINE):
    for i in x:
        v[i] -= STEP * oc.sin(x[i])


@oc.kernel
def drift(x: LINE, v: LINE):
    for i in x:
        x[i] += STEP * v[i]


@oc.kernel
def distance(x: LINE, loss: LINE):
    for i in x:
        loss[0] += x[i] ** 2


@oc.kernel
def kick_row(t: oc.i32, x: ROWS, v: ROWS):
    for i in range(x.shape[1]):
        v[t + 1, i] = v[t, i] - STEP * oc.sin(x[t, i])


@oc.kernel
def drift_row(t: oc.i32, x: ROWS, v: ROWS):
    for i in range(x.shape[1]):
        x[t + 1, i] = x[t, i] + STEP * v[t + 1, i]


@oc.kernel
def distance_row(t: oc.i32, x: ROWS, loss: LINE):
    for i in range(x.shape[1]):
        loss[0] += x[t, i] ** 2


def measured(roll, arrays, memory):
    """The least times of the steps and of the way back, with the tape of the last round and the gradients."""
    x, v, loss = arrays
    first = np.linspace(0.1, 0.9, COUNT, dtype=np.float32)
    forward, back = [], []
    for _ in range(ROUNDS):
        values = np.zeros(x.shape, dtype=np.float32)
        values.reshape(-1, COUNT)[0] = first
        x.from_numpy(values)
        v.fill(0)
        for array in arrays:
            array.grad.fill(0)
        loss.fill(0)
        loss.grad.fill(1)
        tape = oc.ad.Tape(memory=memory, clear_gradients=False)
        oc.sync()
        begin = time.perf_counter()
        with tape:
            roll(x, v, loss)
        oc.sync()
        middle = time.perf_counter()
        tape.grad()
        oc.sync()
        forward.append(middle - begin)
        back.append(time.perf_counter() - middle)
    return min(forward), min(back), tape, x.grad.to_numpy().reshape(-1, COUNT)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description="Times long rollouts.")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    steps = given.steps
    oc.init(arch=getattr(oc, given.device), log_level="error", enable_fallback=False)

    def in_rows(x, v, loss):
        for t in range(steps):
            kick_row(t, x, v)
            drift_row(t, x, v)
        distance_row(steps, x, loss)

    def in_place(x, v, loss):
        for _ in range(steps):
            kick(x, v)
            drift(x, v)
        distance(x, loss)

    def arrays(*shape):
        return [*(oc.ndarray(oc.f32, shape, needs_grad=True) for _ in range(2)), oc.ndarray(oc.f32, 1, needs_grad=True)]

    lines = [
        f"{steps} steps of {COUNT} pendulums on {given.device}, two kernels a step.",
        "",
        "| | steps | way back | bytes of arrays | kept bytes | runs again, a call |",
        "|---|---|---|---|---|---|",
    ]
    calls = 2 * steps + 1
    forward, back, _, expected = measured(in_rows, arrays(steps + 1, COUNT), None)
    lines.append(f"| a row for each step | {forward:.2f} s | {back:.2f} s | {16 * (steps + 1) * COUNT:,} | 0 | 0 |")
    for memory in ("64KB", "1MB", "16MB"):
        forward, back, tape, found = measured(in_place, arrays(COUNT), memory)
        np.testing.assert_allclose(found, expected, rtol=1e-4)
        lines.append(
            f'| in place, `memory="{memory}"` | {forward:.2f} s | {back:.2f} s | {16 * COUNT:,} | {tape.most_kept_bytes:,} | {tape.calls_again / calls:.2f} |'
        )
    text = "\n".join(lines) + "\n"
    print(text)
    if given.write:
        head = "# What a long rollout costs\n\nWritten by `benches/long_rollouts.py --write`.\n\n"
        (RESULTS / f"long_rollouts_{given.device}.md").write_text(head + text, encoding="utf-8")


if __name__ == "__main__":
    main()
