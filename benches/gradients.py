"""What gradients cost: `python benches/gradients.py [--device cuda] [--peer FOLDER | --peer-python PYTHON] [--only NAME] [--name NAME]`.

The same text under octants and, if a peer is named, quadrants with its option for stacks: each in a process of its own, in turns, the best of several
rounds. A figure is the time of `kernel.grad` and that of the kernel itself. Gradients are compared between systems before anything is told.
`--peer` is a folder that its wheel was unpacked into, `--peer-python` an interpreter that can import it, `--octants` a folder with octants.

Needs numpy. Writes `benches/results/gradients_DEVICE.json` and `.md`.
"""

import argparse
import json
import os
import re
import sys
import tempfile
import time

from harness.asking import add_systems, ask, ask_in_turns, chosen_systems, keep

#: Programs, what they are, and which target of gradient against forward they have.
PROGRAMS = {
    "polynomial": ("`y = a x² + b x`, 2²⁰ elements", 2.5),
    "functions": ("sine, exponential, root and quotient, 2²⁰ elements", 2.5),
    "stencil": ("five points, 1024 × 1024", 2.5),
    "sum": ("squares added into one element, 2²⁰ elements", 2.5),
    "matrices": ("3 × 3 matrix times vector, normalised, 2¹⁸ elements", 2.5),
    "branches": ("two sides of an `if`, 2²⁰ elements", 2.5),
    "loop": ("`v = sin(v) * 0.9 + 0.1`, 64 steps from a field", 3.0),
    "nest": ("two loops of 64 inside each other, carried values", None),
    "rows": ("sparse rows times vector, 2¹⁶ rows of 0 to 31", None),
    "pairs": ("forces between 1024 bodies", None),
    "mpm88": ("one substep of the material point method, 8192 particles", 4.0),
}

#: Targets on a GPU that are others.
GPU_TARGETS = {"loop": 5.0}


def best(run, wait, budget=0.25, rounds=5):
    """Seconds of one call."""
    run()
    wait()
    begin = time.perf_counter()
    run()
    wait()
    once = max(time.perf_counter() - begin, 1e-7)
    calls = max(1, int(budget / rounds / once))
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(calls):
            run()
        wait()
        times.append((time.perf_counter() - begin) / calls)
    return min(times)


def programs(qd, np, gpu, small=False):
    """Of each program: a function that makes its arrays, and gives what runs it, what runs its gradients, and the array of gradients.

    The same kernels on few elements, if they are asked for.
    """
    long, edge = (2**10, 256) if small else (2**20, 1024)
    f32, i32 = qd.f32, qd.i32
    one, two = qd.types.ndarray(dtype=f32, ndim=1), qd.types.ndarray(dtype=f32, ndim=2)
    ints = qd.types.ndarray(dtype=i32, ndim=1)
    rng = np.random.default_rng(1)

    def array(values):
        made = qd.ndarray(f32, values.shape, needs_grad=True)
        made.from_numpy(values.astype(np.float32))
        return made

    def seeded(shape):
        return array(np.zeros(shape))

    def of(kernel, x, y, *rest):
        ones = np.ones(y.shape, np.float32)

        def seed():
            x.grad.fill(0)
            y.grad.from_numpy(ones)

        def back():
            kernel.grad(x, y, *rest)

        back.plan = lambda: kernel.grad_plan(x, y, *rest)
        return lambda: kernel(x, y, *rest), back, x.grad, seed

    def polynomial():
        @qd.kernel
        def polynomial(x: one, y: one):
            for i in range(x.shape[0]):
                y[i] = 3.0 * x[i] * x[i] + 2.0 * x[i]

        return of(polynomial, array(rng.random(long)), seeded(long))

    def functions():
        @qd.kernel
        def functions(x: one, y: one):
            for i in range(x.shape[0]):
                a = qd.sin(x[i]) * qd.exp(x[i])
                y[i] = qd.sqrt(x[i] + 1.0) / (a + 2.0)

        return of(functions, array(rng.random(long)), seeded(long))

    def stencil():
        @qd.kernel
        def stencil(x: two, y: two):
            for i, j in qd.ndrange((1, edge - 1), (1, edge - 1)):
                y[i, j] = x[i, j] * (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])

        return of(stencil, array(rng.random((edge, edge))), seeded((edge, edge)))

    def total():
        @qd.kernel
        def total(x: one, y: one):
            for i in range(x.shape[0]):
                y[0] += x[i] * x[i]

        return of(total, array(rng.random(long)), seeded(1))

    def matrices():
        @qd.kernel
        def matrices(x: two, y: two):
            for i in range(x.shape[0]):
                v = qd.Vector([x[i, 0], x[i, 1], x[i, 2]])
                m = qd.Matrix([[1.0, 0.5, 0.25], [0.5, 2.0, 0.125], [0.25, 0.125, 3.0]])
                w = m @ v
                n = w / qd.sqrt(w.dot(w) + 1.0)
                for k in qd.static(range(3)):
                    y[i, k] = n[k]

        return of(matrices, array(rng.random((long // 4, 3))), seeded((long // 4, 3)))

    def branches():
        @qd.kernel
        def branches(x: one, y: one):
            for i in range(x.shape[0]):
                v = x[i] * 2.0
                if v > 1.0:
                    v = v * v
                else:
                    v = qd.exp(-v)
                y[i] = v

        return of(branches, array(rng.random(long)), seeded(long))

    def loop():
        n = long if gpu or small else 65_536
        steps = qd.field(i32, shape=())
        steps[None] = 64

        @qd.kernel
        def loop(x: one, y: one):
            for i in range(x.shape[0]):
                v = x[i]
                for _ in range(steps[None]):
                    v = qd.sin(v) * 0.9 + 0.1
                y[i] = v

        return of(loop, array(rng.random(n)), seeded(n))

    def nest():
        n = 64 if small else 8192 if gpu else 512
        steps = qd.field(i32, shape=())
        steps[None] = 64

        @qd.kernel
        def nest(x: one, y: one):
            for i in range(x.shape[0]):
                v = x[i]
                for _outer in range(steps[None]):
                    for _inner in range(steps[None]):
                        v = qd.sin(v) * 0.9 + 0.1
                y[i] = v

        return of(nest, array(rng.random(n)), seeded(n))

    def rows():
        n = long // 16
        counts = rng.integers(0, 32, n)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        columns = rng.integers(0, n, int(starts[-1])).astype(np.int32)
        first, at, weights = (
            qd.ndarray(i32, len(starts)),
            qd.ndarray(i32, len(columns)),
            array(rng.random(len(columns))),
        )
        first.from_numpy(starts)
        at.from_numpy(columns)

        @qd.kernel
        def rows(x: one, y: one, first: ints, at: ints, w: one):
            for i in range(y.shape[0]):
                total = 0.0
                for k in range(first[i], first[i + 1]):
                    total += w[k] * x[at[k]]
                y[i] = total

        return of(rows, array(rng.random(n)), seeded(n), first, at, weights)

    def pairs():
        @qd.kernel
        def pairs(x: two, y: two):
            for i in range(x.shape[0]):
                force = qd.Vector([0.0, 0.0])
                for j in range(1024):
                    away = qd.Vector([x[j, 0] - x[i, 0], x[j, 1] - x[i, 1]])
                    square = away.dot(away) + 0.01
                    force += away / (square * qd.sqrt(square))
                y[i, 0] = force[0]
                y[i, 1] = force[1]

        return of(pairs, array(rng.random((1024, 2))), seeded((1024, 2)))

    return {
        "polynomial": polynomial, "functions": functions, "stencil": stencil, "sum": total, "matrices": matrices, "branches": branches,
        "loop": loop, "nest": nest, "rows": rows, "pairs": pairs, "mpm88": lambda: mpm88(qd, np),
    }  # fmt: skip


def mpm88(qd, np):
    """Particles to a grid and back: three kernels on fields."""
    particles, cells, dt = 8192, 64, 2e-4
    f32 = qd.f32
    rng = np.random.default_rng(2)
    x, v = qd.Vector.field(2, f32, particles, needs_grad=True), qd.Vector.field(2, f32, particles, needs_grad=True)
    c, j = qd.Matrix.field(2, 2, f32, particles, needs_grad=True), qd.field(f32, particles, needs_grad=True)
    x1, v1 = qd.Vector.field(2, f32, particles, needs_grad=True), qd.Vector.field(2, f32, particles, needs_grad=True)
    c1, j1 = qd.Matrix.field(2, 2, f32, particles, needs_grad=True), qd.field(f32, particles, needs_grad=True)
    grid_v, grid_m = (
        qd.Vector.field(2, f32, (cells, cells), needs_grad=True),
        qd.field(f32, (cells, cells), needs_grad=True),
    )
    grid_w = qd.Vector.field(2, f32, (cells, cells), needs_grad=True)
    volume = (0.5 / cells) ** 2
    x.from_numpy((0.3 + 0.4 * rng.random((particles, 2))).astype(np.float32))
    v.from_numpy(rng.standard_normal((particles, 2)).astype(np.float32))
    j.fill(1.0)

    @qd.kernel
    def to_grid():
        for p in range(particles):
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
            w = qd.Vector([0.0, 0.0])
            if grid_m[a, b] > 0.0:
                w = grid_v[a, b] / grid_m[a, b]
            w[1] -= dt * 9.8
            if a < 3 and w[0] < 0.0:
                w[0] = 0.0
            if b < 3 and w[1] < 0.0:
                w[1] = 0.0
            grid_w[a, b] = w

    @qd.kernel
    def to_particles():
        for p in range(particles):
            base = qd.cast(x[p] * cells - 0.5, qd.i32)
            fx = x[p] * cells - qd.cast(base, f32)
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2]
            new_v = qd.Vector([0.0, 0.0])
            new_c = qd.Matrix([[0.0, 0.0], [0.0, 0.0]])
            for a, b in qd.static(qd.ndrange(3, 3)):
                away = (qd.Vector([a, b]) - fx) / cells
                weight = w[a][0] * w[b][1]
                here = grid_w[base + qd.Vector([a, b])]
                new_v += weight * here
                new_c += 4.0 * weight * here.outer_product(away) * cells * cells
            v1[p] = new_v
            x1[p] = x[p] + dt * new_v
            j1[p] = j[p] * (1.0 + dt * (new_c[0, 0] + new_c[1, 1]))
            c1[p] = new_c

    ones = np.ones((particles, 2), np.float32)

    def run():
        to_grid()
        on_grid()
        to_particles()

    def back():
        to_particles.grad()
        on_grid.grad()
        to_grid.grad()

    def seed():
        for field in (x, v, c, j, v1, c1, j1, grid_v, grid_m, grid_w):
            field.grad.fill(0)
        grid_v.fill(0)
        grid_m.fill(0)
        run()
        x1.grad.from_numpy(ones)

    return run, back, v.grad, seed


def compile_times(system, device, only):
    """Milliseconds of the first gradient of each kernel, and of a second one, in a session without a cache, on few elements."""
    qd, np = load(system, device)
    found = {}
    for name, make in programs(qd, np, device != "cpu", small=True).items():
        if only and name not in only:
            continue
        run, back, _, seed = make()
        run()
        seed()
        qd.sync()
        begin = time.perf_counter()
        try:
            back()
            qd.sync()
        except RuntimeError:
            # Not enough memory for its stacks, say: that program has no time.
            continue
        first = time.perf_counter() - begin
        # The same adjoints again: a gradient leaves zeros, and those of `nest` fade to subnormal numbers, which take several times as long.
        seed()
        qd.sync()
        begin = time.perf_counter()
        back()
        qd.sync()
        found[name] = {"first": 1e3 * first, "second": 1e3 * (time.perf_counter() - begin)}
    return found


def load(system, device):
    import importlib

    import numpy as np

    qd = importlib.import_module(system)
    options = {"ad_stack_experimental_enabled": True, "offline_cache": False, "log_level": "error"}
    qd.init(arch=getattr(qd, device), **options)
    return qd, np


def child(system, device, only):
    """All figures of one system, as JSON on the last line."""
    qd, np = load(system, device)
    found = {}
    for name, make in programs(qd, np, device != "cpu").items():
        if only and name not in only:
            continue
        try:
            run, back, gradients, seed = make()
            run()
            seed()
            back()
            qd.sync()
            values = gradients.to_numpy().reshape(-1).astype(np.float64)
            figures = {
                "forward": best(run, qd.sync),
                "gradient": best(back, qd.sync),
                "check": [float(np.abs(values).sum()), *values[:6].tolist()],
            }
            found[name] = figures
        except Exception as error:
            found[name] = {"error": f"{type(error).__name__}: {str(error).strip().splitlines()[0][:160]}"}
    print(json.dumps(found))


def compile_child(system, device, only):
    print(json.dumps(compile_times(system, device, only)))


def memory_child(system, device):
    """Bytes that the gradient of `nest` keeps for an iteration that runs, as JSON on the last line. The peer says in a log what its stacks take."""
    os.environ["QD_DEBUG_ADSTACK"] = "1"
    qd, np = load(system, device)
    with tempfile.TemporaryFile() as log:
        sys.stdout.flush()
        usual = [os.dup(1), os.dup(2)]
        for stream in (1, 2):
            os.dup2(log.fileno(), stream)
        run, back, _, seed = programs(qd, np, device != "cpu")["nest"]()
        run()
        seed()
        back()
        qd.sync()
        for stream, own in zip((1, 2), usual, strict=True):
            os.dup2(own, stream)
        log.seek(0)
        strides = re.findall(r"adstack_heap.* stride=(\d+)", log.read().decode(errors="replace"))
    kept = sum(map(int, strides))
    if system == "octants":
        kept = sum(loop["bytes_per_iteration"] for loop in back.plan()["parallel_loops"])
    print(json.dumps(kept))


def disagree(np, mine, other):
    """Whether the gradients of two systems are others."""
    scale = max(abs(value) for value in mine["check"][1:])
    return not np.allclose(mine["check"], other["check"], rtol=5e-3, atol=5e-3 * scale)


def table(results, compiled, memory, device):
    """The figures in Markdown."""
    import numpy as np

    lines = [
        f"# Gradients on {'a GPU' if device != 'cpu' else 'the CPU'}",
        "",
        "Milliseconds of `kernel.grad`, and how many times those of the kernel itself that is. By `benches/gradients.py`.",
        "",
        "| program | octants | × forward | at most | quadrants | × forward | times as fast |",
        "|---|---|---|---|---|---|---|",
    ]
    peer = results.get("quadrants", {})
    for name, (what, target) in PROGRAMS.items():
        mine, other = results["octants"].get(name), peer.get(name)
        target = GPU_TARGETS.get(name, target) if device != "cpu" else target
        if mine is None:
            continue
        row = [f"`{name}`: {what}"]
        if "error" in mine:
            lines.append(f"| {row[0]} | {mine['error']} | | | | | |")
            continue
        row += [
            f"{1e3 * mine['gradient']:.3f}",
            f"{mine['gradient'] / mine['forward']:.2f}",
            f"{target:g}" if target else "",
        ]
        if other is None:
            row += ["", "", ""]
        elif "error" in other:
            row += [other["error"].replace("|", " "), "", ""]
        else:
            wrong = " (other gradients)" if disagree(np, mine, other) else ""
            row += [f"{1e3 * other['gradient']:.3f}{wrong}", f"{other['gradient'] / other['forward']:.2f}"]
            row += [f"{other['gradient'] / mine['gradient']:.1f}"]
        lines.append("| " + " | ".join(row) + " |")
    lines += [
        "",
        "First call of `kernel.grad` less a second one, milliseconds, on few elements, without caches on disk:",
        "",
    ]
    both = len(compiled) > 1
    lines += ["| program | " + " | ".join(compiled) + (" | times as fast |" if both else " |")]
    lines += ["|---|" + "---|" * (len(compiled) + both)]
    for name in next(iter(compiled.values())):
        times = [found.get(name) for found in compiled.values()]
        ratio = [f"{times[1] / times[0]:.1f}" if all(times) else ""] if both else []
        cells = ["" if time is None else f"{time:.0f}" for time in times]
        lines.append(f"| `{name}` | " + " | ".join(cells + ratio) + " |")
    kept = ", ".join(f"{system} {count}" for system, count in memory.items())
    lines += ["", f"Bytes that `nest` keeps for an iteration of its parallel loop while that runs: {kept}."]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--device", default="cpu")
    add_systems(parser)
    parser.add_argument("--only", action="append")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--name")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--compile-child", help=argparse.SUPPRESS)
    parser.add_argument("--memory-child", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        return child(chosen.child, chosen.device, chosen.only)
    if chosen.compile_child:
        return compile_child(chosen.compile_child, chosen.device, chosen.only)
    if chosen.memory_child:
        return memory_child(chosen.memory_child, chosen.device)
    systems = chosen_systems(chosen)
    only = [part for name in chosen.only or () for part in ("--only", name)]

    def asked(kind):
        return lambda system: [kind, system, "--device", chosen.device, *only]

    results = ask_in_turns(__file__, chosen, asked("--child"), ("forward", "gradient"))
    # The least of each, and then the difference: that of one round is off by what disturbed its second call, and the least of those by the most.
    least = ask_in_turns(__file__, chosen, asked("--compile-child"), ("first", "second"))
    compiled = {
        system: {key: one["first"] - one["second"] for key, one in found.items()} for system, found in least.items()
    }
    memory = {}
    for name, (python, folder) in systems.items():
        memory[name] = ask(__file__, python, folder, ["--memory-child", name, "--device", chosen.device])
    text = table(results, compiled, memory, chosen.device)
    print(text)
    name = chosen.name or ("partial_gradients" if chosen.only else f"gradients_{chosen.device}")
    data = {
        "device": chosen.device,
        "results": results,
        "compile_ms": compiled,
        "nest_bytes": memory,
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
    }
    keep(name, text, data)
    return None


if __name__ == "__main__":
    main()
