"""How the time to compile a gradient grows with a kernel: `python benches/gradient_growth.py [--write]`.

Kernels with a loop that carries more and more values, with deeper and deeper loops, with a longer body of a loop, and of more and more statements without one. A figure is what the process
computes for, on all its threads, in the first call of `kernel.grad` beyond the second one, and in that of `kernel` alone; the least of some. Near linear is what is wanted: twice as much takes about twice as long.

`--write` leaves the table in `benches/results/gradient_growth.md`.
"""

from __future__ import annotations

import argparse
import importlib.util
import tempfile
import time
from pathlib import Path

import octants as oc

RESULTS = Path(__file__).resolve().parent / "results"
ROUNDS = 3

HEAD = """import octants as oc

REALS = oc.types.ndarray(dtype=oc.f32, ndim=1)
COUNTS = oc.types.ndarray(dtype=oc.i32, ndim=1)


@oc.kernel
def kernel(x: REALS, y: REALS, n: COUNTS):
    for i in x:
"""


def carried(count: int, depth: int = 1) -> str:
    names = [f"v{number}" for number in range(count)]
    lines = [f"        {name} = x[i] * {0.3 + 0.1 * number:.1f}" for number, name in enumerate(names)]
    lines += [f"{'    ' * (2 + level)}for k{level} in range(n[i % 2]):" for level in range(depth)]
    lines += [
        f"{'    ' * (2 + depth)}{name} = oc.sin({name}) * 0.9 + 0.1 * {names[(number + 1) % count]}"
        for number, name in enumerate(names)
    ]
    return "\n".join([*lines, f"        y[i] = {' + '.join(names)}"])


def nested(depth: int) -> str:
    lines = ["        v = x[i]"]
    lines += [f"{'    ' * (2 + level)}for k{level} in range(n[i % 2]):" for level in range(depth)]
    return "\n".join([*lines, f"{'    ' * (2 + depth)}v = oc.sin(v) * 0.9 + 0.1", "        y[i] = v"])


def statements(count: int, indent: str) -> list[str]:
    return [f"{indent}v = oc.sin(v) * {0.9 - 0.001 * number:.3f} + 0.1" for number in range(count)]


def body(count: int) -> str:
    lines = ["        v = x[i]", "        for step in range(n[i % 2]):", *statements(count, " " * 12)]
    return "\n".join([*lines, "        y[i] = v"])


def straight(count: int) -> str:
    return "\n".join(["        v = x[i]", *statements(count, " " * 8), "        y[i] = v"])


#: What grows, the text that it makes, and how large it becomes.
KINDS = {
    "values that a loop carries": (carried, (1, 4, 16, 64)),
    "loops inside each other": (nested, (1, 2, 3, 4, 5, 6)),
    "loops inside each other that carry 40 values": (lambda depth: carried(40, depth), (1, 2, 3, 4, 5, 6)),
    "statements in a loop": (body, (1, 8, 32, 128)),
    "statements without a loop": (straight, (8, 32, 128, 256)),
}


def milliseconds(text: str, folder: Path, forward: bool = False) -> float:
    """What compiling the gradient takes, or the kernel alone."""
    least = float("inf")
    path = folder / "growing.py"
    path.write_text(HEAD + text + "\n", encoding="utf-8")
    for _ in range(ROUNDS):
        oc.init(arch=oc.cpu, offline_cache=False, log_level="error")
        spec = importlib.util.spec_from_file_location("growing", path)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        x, y = (oc.ndarray(oc.f32, 4, needs_grad=True) for _ in range(2))
        n = oc.ndarray(oc.i32, 2)
        n.fill(2)
        y.grad.fill(1)
        run = module.kernel if forward else module.kernel.grad
        marks = [time.process_time()]
        for _ in range(2):
            run(x, y, n)
            marks.append(time.process_time())
        least = min(least, 2 * marks[1] - marks[0] - marks[2])
    return 1e3 * least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="leave the table in benches/results")
    given = parser.parse_args()
    lines = ["| what grows | how many: milliseconds of compiling the gradient and the kernel |", "|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for forward in (True, False):
            milliseconds(carried(2), Path(folder), forward)
        for what, (make, sizes) in KINDS.items():
            found = []
            for size in sizes:
                gradient, kernel = (milliseconds(make(size), Path(folder), forward) for forward in (False, True))
                found.append(f"{size}: {gradient:.0f} and {kernel:.0f}")
            lines.append(f"| {what} | {', '.join(found)} |")
    table = "\n".join(lines) + "\n"
    print(table)
    if given.write:
        head = "# How compiling a gradient grows\n\nWritten by `benches/gradient_growth.py --write`.\n\n"
        (RESULTS / "gradient_growth.md").write_text(head + table, encoding="utf-8")


if __name__ == "__main__":
    main()
