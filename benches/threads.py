"""Times short loops over numbers of threads: `python benches/threads.py [--threads 1,2,4,8,16] [--against PATH]`.

A loop of some microseconds must not lose to its own pool. For each number of threads a process of its own runs the programs below;
the table gives the median time of a launch and how many times as fast as one thread it is. `--against` names a folder that holds another
build of the package (an unpacked wheel): it runs the same programs, and the last columns give old time over new.

Needs numpy and an importable octants; nothing of the harness.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path


def median_time(run, seconds):
    """Microseconds of one call: the median over batches, each of about a millisecond."""
    for _ in range(20):
        run()
    begin = time.perf_counter()
    run()
    once = time.perf_counter() - begin
    batch = max(1, int(1e-3 / max(once, 1e-7)))
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        begin = time.perf_counter()
        for _ in range(batch):
            run()
        times.append((time.perf_counter() - begin) / batch)
    return 1e6 * sorted(times)[len(times) // 2]


def programs(oc):
    """Names and calls, on a session that is there."""
    import numpy as np

    vector = oc.types.ndarray(dtype=oc.f32, ndim=1)
    grid = oc.types.ndarray(dtype=oc.f32, ndim=2)

    @oc.kernel
    def nothing():
        pass

    @oc.kernel
    def four(a: vector, b: vector, c: vector, d: vector, s: oc.f32, n: oc.i32):
        for i in range(n):
            a[i] = b[i] + c[i] * d[i] * s

    @oc.kernel
    def saxpy(x: vector, y: vector, a: oc.f32):
        for i in x:
            y[i] += a * x[i]

    @oc.kernel
    def stencil(a: grid, b: grid):
        for i, j in oc.ndrange((1, a.shape[0] - 1), (1, a.shape[1] - 1)):
            around = a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1]
            b[i, j] = a[i, j] + 0.1 * (around - 4.0 * a[i, j])

    @oc.kernel
    def escape(out: vector):
        for i in out:
            z = 0.0
            c = -0.7 + 0.0001 * i
            k = 0
            while z < 4.0 and k < 200:
                z = z * z + c
                k += 1
            out[i] = k

    def array(*shape):
        made = oc.ndarray(oc.f32, shape)
        made.from_numpy(np.full(shape, 0.5, np.float32))
        return made

    yield "launch, no argument", nothing
    tiny = [array(16) for _ in range(4)]
    yield "launch, four arrays and two scalars, 16 points", lambda: four(*tiny, 2.0, 16)
    for size in (1_000, 10_000, 30_000, 100_000, 1_000_000, 10_000_000):
        x, y = array(size), array(size)
        yield f"saxpy {size:,}", lambda x=x, y=y: saxpy(x, y, 1e-6)
    for size in (128, 512, 2048):
        a, b = array(size, size), array(size, size)
        yield f"stencil {size}²", lambda a=a, b=b: stencil(a, b)
    for size in (100, 1_000, 10_000):
        out = array(size)
        yield f"while loops {size:,}", lambda out=out: escape(out)
    for particles in (5_000, 20_000, 200_000):
        yield f"MPM-88, {particles:,} particles, a substep", mpm88(oc, np, particles)


def mpm88(oc, np, particles, cells=128):
    """One substep, by the program of the benchmarks: four loops, of which one scatters."""
    path = Path(__file__).parent / "programs/mpm88/kernel.py"
    spec = importlib.util.spec_from_file_location("mpm88_kernel", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    random = np.random.default_rng(88)
    x = oc.Vector.ndarray(2, oc.f32, particles)
    x.from_numpy((random.random((particles, 2)) * 0.4 + 0.3).astype(np.float32))
    v, C = oc.Vector.ndarray(2, oc.f32, particles), oc.Matrix.ndarray(2, 2, oc.f32, particles)
    J = oc.ndarray(oc.f32, particles)
    J.fill(1.0)
    grid_v, grid_m = oc.Vector.ndarray(2, oc.f32, (cells, cells)), oc.ndarray(oc.f32, (cells, cells))
    return lambda: module.run(x, v, C, J, grid_v, grid_m)


def child(threads, seconds, only):
    import octants as oc

    oc.init(arch=oc.cpu, cpu_max_num_threads=threads)
    times = {}
    for name, run in programs(oc):
        if only in name:
            times[name] = median_time(run, seconds)
            # Workers fall asleep between programs, as they do between a program's phases.
            time.sleep(0.01)
    print(json.dumps(times))


def measure(threads, seconds, only, package):
    env = dict(os.environ)
    if package:
        env["PYTHONPATH"] = package
    command = [sys.executable, __file__, "--child", str(threads), "--seconds", str(seconds), "--only", only]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", default="1,2,4,8,16", help="numbers of threads, the first of which is the unit")
    parser.add_argument("--seconds", type=float, default=0.3, help="time for each figure")
    parser.add_argument("--only", default="", help="only programs whose name contains this")
    parser.add_argument("--against", metavar="PATH", help="folder of another build of the package")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return child(args.child, args.seconds, args.only)
    counts = [int(count) for count in args.threads.split(",")]
    available = len(os.sched_getaffinity(0))
    print(f"{available} processors; µs of a launch (times as fast as with {counts[0]})")
    new = {count: measure(count, args.seconds, args.only, None) for count in counts}
    old = {count: measure(count, args.seconds, args.only, args.against) for count in counts if args.against}
    head = "".join(f"{count:>16}" for count in counts) + "".join(f"{f'old/new {count}':>12}" for count in old)
    print(f"{'threads':<48}{head}")
    for name, first in new[counts[0]].items():
        cells = "".join(f"{new[count][name]:>9.2f} ({first / new[count][name]:>4.1f})" for count in counts)
        ratios = "".join(f"{old[count][name] / new[count][name]:>12.2f}" for count in old)
        print(f"{name:<48}{cells}{ratios}")
    return None


if __name__ == "__main__":
    main()
