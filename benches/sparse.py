"""What sparse fields cost: `python benches/sparse.py [--device cuda] [--peer FOLDER | --peer-python PYTHON] [--only NAME] [--threads N]`.

The same text under octants and, if a peer is named, quadrants: each in a process of its own, in turns, the best of several rounds. What programs
compute is compared between the systems before anything is told. `--peer` is a folder that its wheel was unpacked into, `--peer-python` an interpreter
that can import it, `--octants` a folder with octants. With `--threads 1` times are the processor's, not the clock's.

Needs numpy. Writes `benches/results/sparse_DEVICE.json` and `.md`.
"""

import argparse
import json
import time

from harness.asking import add_systems, ask_in_turns, keep

#: Programs, what they are, and how many times as fast as quadrants they should be on a CPU.
PROGRAMS = {
    "visit scattered": ("loop over a pointer → bitmasked grid, 4096², every tenth element active: `x = x * 1.5 + 1`", 3.0),
    "visit clustered": ("the same grid, every tenth block active and full", 3.0),
    "visit sum": ("the sum of the scattered grid", 3.0),
    "visit dense leaves": ("loop over pointer → dense blocks of 16², every tenth active: `x = x * 1.5 + 1`", 3.0),
    "activate": ("a million elements in blocks of 4 × 4, made by a parallel loop in an empty tree", 3.0),
    "activate bits": ("a million bits in blocks of 16 × 16, made in an empty tree", 3.0),
    "activate scattered": ("a million elements in blocks of 4 × 4, in random order", 3.0),
    "append": ("ten million values to 4096 dynamic lists, by list", 2.0),
    "append mixed": ("ten million values to 4096 dynamic lists, in turns", 2.0),
    "write": ("every element of a pointer → dense grid of 2048², cells active", None),
    "stencil": ("five points on a pointer → dense grid of 4096², every tenth block active", 3.0),
    "mpm": ("a substep of the material point method on a sparse grid with lists of particles by block, 65,536 particles", 3.0),
}  # fmt: skip


def measure(program, wait, clock, rounds):
    """Seconds of one run, the best of several; what must be done before each is not timed."""
    prepare, run, _ = program
    times = []
    for _ in range(rounds):
        prepare()
        wait()
        begin = clock()
        run()
        wait()
        times.append(clock() - begin)
    return min(times)


def programs(qd, np):
    """Of each program: a function that makes its fields and gives what prepares a run, the run, and a number that says what it computed."""
    f32, i32 = qd.f32, qd.i32

    def nothing():
        pass

    def summed(x):
        @qd.kernel
        def total() -> qd.f64:
            s = qd.cast(0.0, qd.f64)
            for at in qd.grouped(x):
                s += qd.cast(x[at], qd.f64)
            return s

        return lambda: float(total())

    def visited(scattered):
        x = qd.field(f32)
        qd.root.pointer(qd.ij, 256).bitmasked(qd.ij, 16).place(x)

        @qd.kernel
        def begin():
            for i, j in qd.ndrange(4096, 4096):
                if qd.static(scattered):
                    if (i * 7 + j * 3) % 10 == 0:
                        x[i, j] = 1.0
                else:
                    if ((i // 16) * 7 + (j // 16) * 3) % 10 == 0:
                        x[i, j] = 1.0

        @qd.kernel
        def visit():
            for i, j in x:
                x[i, j] = x[i, j] * 0.5 + 1.0

        begin()
        return x, visit

    def visit_scattered():
        x, visit = visited(True)
        return nothing, visit, summed(x)

    def visit_clustered():
        x, visit = visited(False)
        return nothing, visit, summed(x)

    def visit_sum():
        x, _ = visited(True)
        total = summed(x)
        return nothing, total, total

    def visit_dense():
        x = qd.field(f32)
        qd.root.pointer(qd.ij, 256).dense(qd.ij, 16).place(x)

        @qd.kernel
        def begin():
            for i, j in qd.ndrange(256, 256):
                if (i * 7 + j * 3) % 10 == 0:
                    x[i * 16, j * 16] = 1.0

        @qd.kernel
        def visit():
            for i, j in x:
                x[i, j] = x[i, j] * 0.5 + 1.0

        begin()
        return nothing, visit, summed(x)

    def activate(leaf, kind, mixed=False):
        x = qd.field(i32)
        blocks = qd.root.pointer(qd.ij, 1024 // leaf)
        getattr(blocks, kind)(qd.ij, leaf).place(x)

        @qd.kernel
        def make():
            for k in range(1024 * 1024):
                at = (k * 4_150_755 + 77) % 1_048_576 if qd.static(mixed) else k
                x[at // 1024, at % 1024] = k

        return blocks.deactivate_all, make, summed(x)

    def append(mixed):
        values = qd.field(i32)
        lists = qd.root.dense(qd.i, 4096).dynamic(qd.j, 4096, chunk_size=256)
        lists.place(values)

        @qd.kernel
        def fill():
            for k in range(10_000_000):
                at = k % 4096 if qd.static(mixed) else k // 2442
                qd.append(lists, [at], k)

        @qd.kernel
        def total() -> qd.f64:
            s = qd.cast(0.0, qd.f64)
            for i in range(4096):
                for j in range(qd.length(lists, [i])):
                    s += values[i, j]
            return s

        return lists.deactivate_all, fill, lambda: float(total())

    def write():
        x = qd.field(f32)
        qd.root.pointer(qd.ij, 128).dense(qd.ij, 16).place(x)

        @qd.kernel
        def fill(a: f32):
            for i, j in qd.ndrange(2048, 2048):
                x[i, j] = a + i

        fill(0.0)
        return nothing, lambda: fill(1.0), summed(x)

    def stencil():
        x, y = qd.field(f32), qd.field(f32)
        qd.root.pointer(qd.ij, 256).dense(qd.ij, 16).place(x, y)

        @qd.kernel
        def begin():
            for i, j in qd.ndrange(256, 256):
                if (i * 7 + j * 3) % 10 == 0 and 0 < i < 255 and 0 < j < 255:
                    x[i * 16, j * 16] = 1.0

        @qd.kernel
        def step():
            for i, j in x:
                y[i, j] = 0.2 * (x[i, j] + x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])

        begin()
        return nothing, step, summed(y)

    return {
        "visit scattered": visit_scattered,
        "visit clustered": visit_clustered,
        "visit sum": visit_sum,
        "visit dense leaves": visit_dense,
        "activate": lambda: activate(4, "dense"),
        "activate bits": lambda: activate(16, "bitmasked"),
        "activate scattered": lambda: activate(4, "dense", mixed=True),
        "append": lambda: append(False),
        "append mixed": lambda: append(True),
        "write": write,
        "stencil": stencil,
        "mpm": lambda: mpm(qd, np),
    }


def mpm(qd, np):
    """Particles in lists by block of a sparse grid: sorted in, to the grid, on it, and back."""
    particles, cells, leaf, dt = 65_536, 512, 8, 2e-5
    f32 = qd.f32
    rng = np.random.default_rng(2)
    x, v = qd.Vector.field(2, f32, particles), qd.Vector.field(2, f32, particles)
    c, j = qd.Matrix.field(2, 2, f32, particles), qd.field(f32, particles)
    grid_v, grid_m = qd.Vector.field(2, f32), qd.field(f32)
    members = qd.field(qd.i32)
    blocks = qd.root.pointer(qd.ij, cells // leaf)
    blocks.dense(qd.ij, leaf).place(grid_v, grid_m)
    owners = qd.root.pointer(qd.ij, cells // leaf)
    lists = owners.dynamic(qd.k, 4096, chunk_size=64)
    lists.place(members)
    volume = (0.5 / cells) ** 2
    start_x = (0.35 + 0.25 * rng.random((particles, 2))).astype(np.float32)
    start_v = rng.standard_normal((particles, 2)).astype(np.float32)

    @qd.kernel
    def sort_in():
        for p in range(particles):
            base = qd.cast(x[p] * cells - 0.5, qd.i32)
            qd.append(lists, [base[0] // leaf, base[1] // leaf], p)

    @qd.kernel
    def to_grid():
        for bi, bj, k in members:
            p = members[bi, bj, k]
            base = qd.cast(x[p] * cells - 0.5, qd.i32)
            fx = x[p] * cells - qd.cast(base, f32)
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2]
            stress = -dt * 4.0 * 400.0 * volume * (j[p] - 1.0) * cells * cells
            affine = qd.Matrix([[stress, 0.0], [0.0, stress]]) + volume * c[p]
            for a, b in qd.static(qd.ndrange(3, 3)):
                away = (qd.Vector([a, b]) - fx) / cells
                weight = w[a][0] * w[b][1]
                grid_v[base + qd.Vector([a, b])] += weight * (volume * v[p] + affine @ away)
                grid_m[base + qd.Vector([a, b])] += weight * volume

    @qd.kernel
    def on_grid():
        for a, b in grid_m:
            if grid_m[a, b] > 0.0:
                w = grid_v[a, b] / grid_m[a, b]
                w[1] -= dt * 9.8
                if a < 3 and w[0] < 0.0:
                    w[0] = 0.0
                if b < 3 and w[1] < 0.0:
                    w[1] = 0.0
                grid_v[a, b] = w

    @qd.kernel
    def to_particles():
        for bi, bj, k in members:
            p = members[bi, bj, k]
            base = qd.cast(x[p] * cells - 0.5, qd.i32)
            fx = x[p] * cells - qd.cast(base, f32)
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2]
            new_v = qd.Vector([0.0, 0.0])
            new_c = qd.Matrix([[0.0, 0.0], [0.0, 0.0]])
            for a, b in qd.static(qd.ndrange(3, 3)):
                away = (qd.Vector([a, b]) - fx) / cells
                weight = w[a][0] * w[b][1]
                here = grid_v[base + qd.Vector([a, b])]
                new_v += weight * here
                new_c += 4.0 * weight * here.outer_product(away) * cells * cells
            v[p] = new_v
            x[p] += dt * new_v
            j[p] *= 1.0 + dt * (new_c[0, 0] + new_c[1, 1])
            c[p] = new_c

    def begin():
        x.from_numpy(start_x)
        v.from_numpy(start_v)
        j.fill(1.0)
        c.fill(0.0)

    def run():
        blocks.deactivate_all()
        owners.deactivate_all()
        sort_in()
        to_grid()
        on_grid()
        to_particles()

    begin()
    return nothing_to_do, run, lambda: float(np.abs(x.to_numpy().astype(np.float64)).sum())


def nothing_to_do():
    pass


def child(system, device, only, threads, rounds):
    """All figures of one system, as JSON on the last line."""
    import importlib

    import numpy as np

    qd = importlib.import_module(system)
    options = {"offline_cache": False, "log_level": "error"}
    if threads:
        options["cpu_max_num_threads"] = threads
    qd.init(arch=getattr(qd, device), **options)
    clock = time.process_time if threads == 1 and device == "cpu" else time.perf_counter
    found = {}
    for name, make in programs(qd, np).items():
        if only and name not in only:
            continue
        program = make()
        prepare, run, result = program
        for _ in range(2):
            prepare()
            run()
        check = result()
        found[name] = {"seconds": measure(program, qd.sync, clock, rounds), "check": check}
    print(json.dumps(found))


def table(results, device, threads):
    """The figures in Markdown."""
    where = "a GPU" if device != "cpu" else f"the CPU, {threads} threads" if threads else "the CPU"
    goal = "at least" if device == "cpu" else "at least (GPU)"
    lines = [
        f"# Sparse fields on {where}",
        "",
        "Milliseconds of a run, and how many times as fast as quadrants 1.3.3 that is. By `benches/sparse.py`.",
        "",
        f"| program | octants | quadrants | times as fast | {goal} |",
        "|---|---|---|---|---|",
    ]
    peer = results.get("quadrants", {})
    for name, (what, target) in PROGRAMS.items():
        mine, other = results["octants"].get(name), peer.get(name)
        if mine is None:
            continue
        target = 1.5 if device != "cpu" else target
        row = [f"{name}: {what}", f"{1e3 * mine['seconds']:.2f}"]
        if other:
            wrong = abs(mine["check"] - other["check"]) > 1e-3 * abs(other["check"])
            row += [f"{1e3 * other['seconds']:.2f}{' (other results)' if wrong else ''}"]
            row += [f"{other['seconds'] / mine['seconds']:.2f}"]
        else:
            row += ["", ""]
        lines.append(f"| {' | '.join([*row, f'{target:g}' if target else ''])} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    add_systems(parser)
    parser.add_argument("--only", action="append", choices=PROGRAMS)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--name")
    parser.add_argument("--child")
    options = parser.parse_args()
    if options.child:
        return child(options.child, options.device, options.only, options.threads, 7)
    arguments = ["--device", options.device, "--threads", str(options.threads)]
    for name in options.only or ():
        arguments += ["--only", name]
    results = ask_in_turns(__file__, options, lambda system: ["--child", system, *arguments], ("seconds",))
    text = table(results, options.device, options.threads)
    print(text)
    if not options.only or options.name:
        keep(options.name or f"sparse_{options.device}", text, results)


if __name__ == "__main__":
    main()
