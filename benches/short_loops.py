"""What parallel loops of few iterations cost: `python benches/short_loops.py [--peer FOLDER | --peer-python PYTHON] [--only NAME] [--write]`.

A parallel loop of 1 to 64 iterations whose body is a serial loop, of one function of reals for each row, and its gradient, which keeps a number for each
step. A figure is the nanoseconds of one step of all iterations together, under octants and, if a peer is named, how many times as long quadrants takes: each in a process
of its own, in turns, the best of several rounds.

Needs numpy. `--write` leaves the table in `benches/results/short_loops.md`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import tempfile
import time
from pathlib import Path

from harness.asking import add_systems, ask_in_turns, keep

#: Iterations of the parallel loop.
COUNTS = (1, 2, 4, 8, 16, 32, 64)

#: Steps of the serial loop: as many as make a call of milliseconds.
STEPS = 100_000

#: What a step does with `v`. `overflow` reaches infinity at once and stays there.
BODIES = {
    "product": "v * 0.999 + 0.1",
    "square": "v * v * 0.4 + 0.3",
    "root": "qd.sqrt(v) * 0.9 + 0.1",
    "sin": "qd.sin(v) * 0.9 + 0.1",
    "cos": "qd.cos(v) * 0.9 + 0.1",
    "tan": "qd.tan(v * 0.1) + 0.5",
    "exp": "qd.exp(-v) + 0.1",
    "overflow": "qd.exp(v + 800.0) + 0.1",
    "log": "qd.log(v + 1.5) + 0.1",
    "tanh": "qd.tanh(v) * 0.9 + 0.3",
    "acos": "qd.acos(v * 0.3) * 0.9",
    "atan2": "qd.atan2(v, 0.7) * 0.9 + 0.1",
    "pow": "(v + 1.0) ** 0.3",
}

#: There is no derivative of what is infinite.
WITHOUT_GRADIENT = ("overflow",)

TEXT = """import {system} as qd

REALS = qd.types.ndarray(dtype=qd.{real}, ndim=1)
steps = qd.field(qd.i32, shape=())


@qd.kernel
def run(x: REALS, y: REALS):
    for i in range(x.shape[0]):
        v = x[i]
        for _ in range(steps[None]):
            v = {body}
        y[i] = v
"""


def loaded(text: str, folder: Path, name: str):
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def seconds(run, wait, budget: float) -> float:
    """Of one call, the least of those that the budget allows, at least two."""
    run()
    wait()
    least, spent = float("inf"), 0.0
    while spent < budget or least == float("inf"):
        begin = time.perf_counter()
        run()
        wait()
        took = time.perf_counter() - begin
        least, spent = min(least, took), spent + took
    return least


def child(system: str, real: str, only: list[str], budget: float, threads: int | None) -> None:
    """All figures of one system, as JSON on the last line."""
    import numpy as np

    qd = importlib.import_module(system)
    options = {"ad_stack_experimental_enabled": True, "offline_cache": False, "log_level": "error"}
    if threads:
        options["cpu_max_num_threads"] = threads
    qd.init(arch=qd.cpu, **options)
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, body in BODIES.items():
            if only and name not in only:
                continue
            text = TEXT.format(system=system, real=real, body=body)
            module = loaded(text, Path(folder), f"short_{name}")
            module.steps[None] = STEPS
            kernel = module.run
            scalar = getattr(qd, real)
            for count in COUNTS:
                x, y = (qd.ndarray(scalar, (count,), needs_grad=True) for _ in range(2))
                values = 0.3 + 0.4 * np.arange(count) / max(count, 2)
                x.from_numpy(values.astype("float32" if real == "f32" else "float64"))
                took = seconds(lambda x=x, y=y: kernel(x, y), qd.sync, budget)
                figures = {"forward": 1e9 * took / STEPS}
                if name not in WITHOUT_GRADIENT:
                    y.grad.fill(1.0)
                    try:
                        took = seconds(lambda x=x, y=y: kernel.grad(x, y), qd.sync, budget)
                        figures["gradient"] = 1e9 * took / STEPS
                    except Exception as error:
                        figures["error"] = str(error).strip().splitlines()[0][:80]
                found[f"{name} {count}"] = figures
    print(json.dumps(found))


def cell(mine: dict[str, float], other: dict[str, float] | None, what: str) -> str:
    """Nanoseconds, and how many times as long the peer takes."""
    if what not in mine:
        return ""
    text = f"{mine[what]:.1f}"
    if other and what in other:
        text += f" ({other[what] / mine[what]:.2f})"
    return text


def tables(results: dict[str, dict[str, dict[str, float]]], real: str) -> str:
    mine, peer = results["octants"], results.get("quadrants", {})
    lines = []
    for what in ("forward", "gradient"):
        note = "" if not peer else ", in brackets how many times as long quadrants takes"
        lines += [f"{what}, {real}: nanoseconds of a step{note}", ""]
        lines += ["| step | " + " | ".join(map(str, COUNTS)) + " |", "|---|" + "---|" * len(COUNTS)]
        for name, body in BODIES.items():
            cells = [cell(mine.get(key, {}), peer.get(key), what) for key in (f"{name} {n}" for n in COUNTS)]
            if any(cells):
                lines.append(f"| `v = {body.replace('qd.', '')}` | " + " | ".join(cells) + " |")
        lines.append("")
    lines += [f"gradient / forward, {real}", ""]
    lines += ["| step | " + " | ".join(map(str, COUNTS)) + " |", "|---|" + "---|" * len(COUNTS)]
    for name, body in BODIES.items():
        figures = [mine.get(f"{name} {n}", {}) for n in COUNTS]
        cells = [f"{f['gradient'] / f['forward']:.1f}" if "gradient" in f else "" for f in figures]
        if any(cells):
            lines.append(f"| `v = {body.replace('qd.', '')}` | " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    add_systems(parser)
    parser.add_argument("--only", action="append")
    parser.add_argument("--real", action="append", choices=("f32", "f64"), help="f32 and f64 if none is named")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=0.03, help="seconds for one figure of one round")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--write", action="store_true", help="leave the table in benches/results")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        return child(given.child, given.real[0], given.only or [], given.budget, given.threads)
    text = "# Parallel loops of few iterations\n\nWritten by `benches/short_loops.py --write`"
    text += f", on {os.cpu_count()} threads.\n\n"
    passed = [part for name in given.only or () for part in ("--only", name)]
    passed += ["--budget", str(given.budget)] + (["--threads", str(given.threads)] if given.threads else [])
    for real in given.real or ("f32", "f64"):

        def asked(system: str, real: str = real) -> list[str]:
            return ["--child", system, "--real", real, *passed]

        text += tables(ask_in_turns(__file__, given, asked, ("forward", "gradient")), real) + "\n"
    print(text)
    if given.write:
        keep("short_loops", text.rstrip() + "\n")
    return None


if __name__ == "__main__":
    main()
