"""What streams and branches give and cost: `python benches/streams.py [--arch cuda] [--peer FOLDER | --peer-python PYTHON]`.

The same text under octants and, if a peer is named, quadrants: each in a process of its own, in turns, the best of several rounds. `--peer` is a
folder that its wheel was unpacked into, `--peer-python` an interpreter that can import it. Results are checked before anything is timed.

Needs numpy and an importable octants; nothing of the harness.
"""

import argparse
import json
import sys
import time
from pathlib import Path

from harness.asking import Failed, add_systems, ask, chosen_systems

BRANCHES = 4

#: Figures: their names, what they are, whether more is better.
FIGURES = {
    "fork4": ("stream_parallel, four branches of 1024-thread loops: times as fast as in order", True),
    "fork2_serial": ("stream_parallel, two branches, each a serial loop: times as fast as in order", True),
    "fork4_serial": ("stream_parallel, four branches, each a serial loop: times as fast as in order", True),
    "streams4": ("explicit streams, four kernels of 1024 threads: times as fast as on one stream", True),
    "tiny2": ("stream_parallel, two tiny branches: µs a launch", False),
    "tiny2_in_order": ("the same loops without blocks: µs a launch", False),
    "tiny2_latency": ("stream_parallel, two tiny branches, launch and wait: µs", False),
    "launch": ("a tiny launch on an explicit stream: µs", False),
    "record_wait": ("an event: record and wait, µs", False),
}


def spent(run, wait, calls):
    """Seconds of one call, with the device idle before and after."""
    wait()
    begin = time.perf_counter()
    for _ in range(calls):
        run()
    wait()
    return (time.perf_counter() - begin) / calls


def best(run, wait, calls, rounds=7):
    run()
    return min(spent(run, wait, calls) for _ in range(rounds))


def measure(qd, arch):
    """The figures under one system."""
    import numpy as np

    gpu = arch != "cpu"
    rows = qd.types.ndarray(dtype=qd.i32, ndim=2)
    row = qd.types.ndarray(dtype=qd.i32, ndim=1)
    steps, serial_steps = (200_000, 200_000) if gpu else (4_000, 1_000_000)

    @qd.func
    def spin(x: qd.i32, n: qd.i32) -> qd.i32:
        v = x
        for _ in range(n):
            # Steps that no compiler joins: where 16 of them were one, the place of the loop in the instruction cache decided on a twentieth.
            v ^= v << 13
            v ^= v >> 17
            v ^= v << 5
        return v

    @qd.kernel
    def in_order(x: rows, n: qd.i32):
        for i in range(1024):
            x[0, i] = spin(i, n)
        for i in range(1024):
            x[1, i] = spin(i, n)
        for i in range(1024):
            x[2, i] = spin(i, n)
        for i in range(1024):
            x[3, i] = spin(i, n)

    @qd.kernel
    def forked(x: rows, n: qd.i32):
        with qd.stream_parallel():
            for i in range(1024):
                x[0, i] = spin(i, n)
        with qd.stream_parallel():
            for i in range(1024):
                x[1, i] = spin(i, n)
        with qd.stream_parallel():
            for i in range(1024):
                x[2, i] = spin(i, n)
        with qd.stream_parallel():
            for i in range(1024):
                x[3, i] = spin(i, n)

    @qd.kernel
    def serial_in_order(x: rows, n: qd.i32, count: qd.template()):
        for b in qd.static(range(count)):
            for _ in range(1):
                x[b, 0] = spin(x[b, 0] + b, n)

    @qd.kernel
    def serial_forked2(x: rows, n: qd.i32):
        with qd.stream_parallel():
            for _ in range(1):
                x[0, 0] = spin(x[0, 0], n)
        with qd.stream_parallel():
            for _ in range(1):
                x[1, 0] = spin(x[1, 0] + 1, n)

    @qd.kernel
    def serial_forked4(x: rows, n: qd.i32):
        with qd.stream_parallel():
            for _ in range(1):
                x[0, 0] = spin(x[0, 0], n)
        with qd.stream_parallel():
            for _ in range(1):
                x[1, 0] = spin(x[1, 0] + 1, n)
        with qd.stream_parallel():
            for _ in range(1):
                x[2, 0] = spin(x[2, 0] + 2, n)
        with qd.stream_parallel():
            for _ in range(1):
                x[3, 0] = spin(x[3, 0] + 3, n)

    @qd.kernel
    def one(x: row, n: qd.i32):
        for i in range(1024):
            x[i] = spin(i, n)

    @qd.kernel
    def tiny(x: row, y: row):
        with qd.stream_parallel():
            for i in range(128):
                x[i] += 1
        with qd.stream_parallel():
            for i in range(128):
                y[i] += 2

    @qd.kernel
    def tiny_in_order(x: row, y: row):
        for i in range(128):
            x[i] += 1
        for i in range(128):
            y[i] += 2

    @qd.kernel
    def touch(x: row):
        for i in range(128):
            x[i] += 1

    def make(*shape):
        return qd.ndarray(qd.i32, shape if len(shape) > 1 else shape[0])

    x, first, second = make(BRANCHES, 1024), make(128), make(128)
    parts = [make(1024) for _ in range(BRANCHES)]
    in_order(x, 100)
    expected = x.to_numpy()
    x.from_numpy(np.zeros_like(expected))
    forked(x, 100)
    assert (x.to_numpy() == expected).all(), "branches give something else"
    figures = {}

    def ratio(name, slow, fast, calls=3):
        figures[name] = best(slow, qd.sync, calls) / best(fast, qd.sync, calls)

    ratio("fork4", lambda: in_order(x, steps), lambda: forked(x, steps))
    ratio("fork2_serial", lambda: serial_in_order(x, serial_steps, 2), lambda: serial_forked2(x, serial_steps))
    ratio("fork4_serial", lambda: serial_in_order(x, serial_steps, 4), lambda: serial_forked4(x, serial_steps))
    figures["tiny2"] = 1e6 * best(lambda: tiny(first, second), qd.sync, 2000)
    figures["tiny2_in_order"] = 1e6 * best(lambda: tiny_in_order(first, second), qd.sync, 2000)

    def launch_and_wait():
        tiny(first, second)
        qd.sync()

    figures["tiny2_latency"] = 1e6 * best(launch_and_wait, qd.sync, 500)
    if not hasattr(qd, "create_stream"):
        return figures
    streams = [qd.create_stream() for _ in range(BRANCHES)]

    def wait():
        for stream in streams:
            stream.synchronize()

    def on_streams():
        for stream, part in zip(streams, parts, strict=True):
            one(part, steps, qd_stream=stream)

    def on_one():
        for part in parts:
            one(part, steps, qd_stream=streams[0])

    on_streams()
    wait()
    figures["streams4"] = best(on_one, wait, 3) / best(on_streams, wait, 3)
    figures["launch"] = 1e6 * best(lambda: touch(first, qd_stream=streams[0]), wait, 2000)
    event = qd.create_event()

    def record_and_wait():
        event.record(qd_stream=streams[0])
        event.wait(qd_stream=streams[1])

    figures["record_wait"] = 1e6 * best(record_and_wait, wait, 2000)
    return figures


def child(system, arch):
    module = __import__(system)
    module.init(arch=getattr(module, arch), **({"offline_cache": False} if system == "quadrants" else {}))
    print(json.dumps(measure(module, arch)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", default="cpu")
    add_systems(parser)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.child, args.arch)
        return
    systems = chosen_systems(args)
    found = {system: {} for system in systems}
    for _ in range(args.rounds):
        for system, (python, path) in systems.items():
            try:
                figures = ask(__file__, python, path, ["--child", system, "--arch", args.arch])
            except Failed as failed:
                print(f"{system}: {failed}", file=sys.stderr)
                continue
            for name, value in figures.items():
                better = max if FIGURES[name][1] else min
                found[system][name] = better(value, found[system].get(name, value))
    print(f"{'':90} " + " ".join(f"{system:>10}" for system in systems))
    for name, (title, _) in FIGURES.items():
        cells = (found[system].get(name) for system in systems)
        print(f"{title:90} " + " ".join(f"{cell:10.2f}" if cell is not None else f"{'–':>10}" for cell in cells))
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
