"""Vectors and matrices in Python scope: `python benches/host_vectors.py [--peer FOLDER | --peer-python PYTHON] [--only WORD] [--rounds N]`.

One expression at a time under octants and, if a peer is named, quadrants: each in a process of its own, in turns, the best of several rounds by the process' own clock. What an expression
gives is compared between systems before anything is told. `--peer` is a folder that the wheel of quadrants was unpacked into, `--peer-python` an interpreter that
can import it, `--octants` a folder with octants.

Needs numpy. Writes `benches/results/host_vectors.md`, unless `--only` is given.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import timeit

from harness.asking import add_systems, chosen_systems, keep

SETUP = """
a, b = qd.Vector([1.0, 2.0, 3.0]), qd.Vector([4.0, 5.0, 6.0])
i, j = qd.Vector([1, 2, 3]), qd.Vector([4, 5, 6])
f, g = qd.Vector([1.0, 2.0, 3.0], dt=qd.f32), qd.Vector([4.0, 5.0, 6.0], dt=qd.f32)
m, n = qd.Matrix([[1.0, 2.0], [3.0, 4.0]]), qd.Matrix([[5.0, 6.0], [7.0, 8.0]])
p = qd.Matrix([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]])
x, y = qd.Vector.field(3, qd.f32, shape=8), qd.Matrix.field(3, 3, qd.f32, shape=8)
vec3 = qd.types.vector(3, qd.f32)
x[2], y[2] = [1.0, 2.0, 3.0], [[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]]
"""

#: What is timed, by kind. Expressions whose results cannot be compared as numbers say how they are.
EXPRESSIONS = {
    "making": [
        "qd.Vector([1.0, 2.0, 3.0])", "qd.Vector([1, 2, 3])", "qd.Vector([1.0, 2.0, 3.0], dt=qd.f32)", "qd.Vector([1, 2.5, 3])", "qd.Vector((1.0, 2.0))",
        "qd.Vector(array)", "qd.Matrix([[1.0, 2.0], [3.0, 4.0]])", "qd.Matrix([[1, 2], [3, 4]])", "qd.Matrix([[1.0, 2.0], [3.0, 4.0]], dt=qd.f32)",
        "qd.Matrix([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])", "vec3(1.0, 2.0, 3.0)", "vec3([1.0, 2.0, 3.0])", "vec3(0.5)",
        "qd.Vector.zero(qd.f32, 3)", "qd.Matrix.identity(qd.f32, 3)", "qd.Matrix.rows([a, b])", "qd.Matrix.cols([a, b])",
    ],
    "arithmetic": [
        "a + b", "a - b", "a * b", "a / b", "a // b", "a % b", "a ** 2", "-a", "abs(a)", "2.0 * a", "a * 2", "a + 1.0", "a / 2.0", "1.0 - a", "i + j", "i * 2", "i // 2",
        "i & j", "f + g", "f * 2.0", "f / 2.0", "m + n", "m * 2.0", "a + i", "f + i", "a + [1.0, 2.0, 3.0]", "a * array",
    ],
    "products": [
        "m @ n", "p @ a", "p @ p", "a.dot(b)", "a.cross(b)", "a.outer_product(b)", "a.norm()", "a.norm_sqr()", "a.normalized()", "f.norm()", "a.sum()", "a.max()",
        "a.min()", "m.determinant()", "m.inverse()", "p.determinant()", "p.inverse()", "m.transpose()", "m.trace()", "a.any()", "a.all()",
    ],
    "looking": [
        "len(a)", "len(m)", "a[0]", "a[1]", "a[-1]", "m[0, 1]", "a.x", "a.z", "a.xy", "a.n", "m.m", "a.to_list()", "m.to_list()", "a.to_numpy()", "m.to_numpy()",
        "f.to_numpy()", "list(a)", "[e for e in a]", "tuple(i)", "float(a[0])", "a[:2]", "p[0, :]", "p[:, 1]", "a.get_shape()", "str(a)",
    ],
    "writing": ["a[0] = 1.0", "m[0, 1] = 2.0", "f[0] = 1.0", "i[0] = 1", "a.x = 1.0"],
    "comparison": ["a == b", "a < b", "a != b", "a >= 1.0", "i == j", "f < g", "(a < b).all()", "bool(a == a)"],
    "functions": ["qd.sqrt(a)", "qd.sin(a)", "qd.max(a, b)", "qd.floor(a)", "qd.abs(a)", "qd.select(a < b, a, b)", "a.cast(qd.i32)", "qd.cast(a, qd.i32)"],
    "elements of fields": ["x[2]", "x[2] + a", "x[2][0]", "y[2]", "y[2] @ x[2]", "x[2].norm()", "x[2].to_numpy()", "x[2] = a"],
}  # fmt: skip


def serve(system: str) -> None:
    """Answers each expression that comes in with seconds and its value."""
    import importlib

    import numpy

    # All systems on one processor, whatever else it does: two are rarely alike.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    qd = importlib.import_module(system)
    qd.init(arch=qd.cpu, offline_cache=False, log_level="error")
    names: dict = {"qd": qd, "array": numpy.array([1.0, 2.0, 3.0])}
    exec(SETUP, names)
    for line in sys.stdin:
        expression = json.loads(line)
        is_statement = " = " in expression
        try:
            value = exec(expression, names) if is_statement else eval(expression, names)
            # The process' own clock: what else the machine does in between is not counted.
            timer = timeit.Timer(expression, timer=time.process_time, globals=names)
            calls = max(1, int(1e-3 / (timer.timeit(20) / 20 + 1e-9)))
            seconds = min(timer.timeit(calls) for _ in range(5)) / calls
            answer = {"seconds": seconds, "value": None if is_statement else shown(value, numpy)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        print(json.dumps(answer), flush=True)


def shown(value, numpy):
    """A value as JSON: numbers in nested lists, or text."""
    if isinstance(value, str):
        return "text"
    to_numpy = getattr(value, "to_numpy", None)
    array = numpy.asarray(to_numpy() if to_numpy else value, dtype=float)
    return numpy.round(array, 5).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description="Vectors and matrices in Python scope")
    add_systems(parser)
    parser.add_argument("--only", action="append")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--serve")
    given = parser.parse_args()
    if given.serve:
        serve(given.serve)
        return
    systems = chosen_systems(given)
    asked = [
        one
        for group in EXPRESSIONS.values()
        for one in group
        if not given.only or any(word in one for word in given.only)
    ]
    servers = {system: started(system, *where) for system, where in systems.items()}
    best: dict[str, dict] = {system: {} for system in systems}
    for _ in range(given.rounds):
        for expression in asked:
            for system, server in servers.items():
                assert server.stdin is not None and server.stdout is not None
                print(json.dumps(expression), file=server.stdin, flush=True)
                # quadrants says its version first.
                answer = json.loads(next(line for line in server.stdout if line.startswith("{")))
                known = best[system].setdefault(expression, answer)
                if answer.get("seconds", float("inf")) < known.get("seconds", float("inf")):
                    best[system][expression] = answer
    for server in servers.values():
        server.communicate()
    text = table(best)
    print(text)
    if not given.only:
        keep("host_vectors", text + "\n")


def started(system: str, python: str, folder: str | None):
    """A process that answers for a system."""
    environment = os.environ | ({"PYTHONPATH": folder} if folder else {})
    command = [python, __file__, "--serve", system]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def table(best: dict) -> str:
    lines = ["| expression | octants, µs | quadrants, µs | ratio | same value |", "|---|---|---|---|---|"]
    ratios = []
    for group, expressions in EXPRESSIONS.items():
        measured = [one for one in expressions if one in best["octants"]]
        lines += [f"| **{group}** | | | | |"] if measured else []
        for expression in measured:
            ours, theirs = best["octants"][expression], best.get("quadrants", {}).get(expression, {})
            cells = [
                f"{1e6 * one['seconds']:.2f}" if "seconds" in one else one.get("error", "–")[:60]
                for one in (ours, theirs)
            ]
            ratio = same = "–"
            if "seconds" in ours and "seconds" in theirs:
                ratios.append(theirs["seconds"] / ours["seconds"])
                ratio, same = f"{ratios[-1]:.2f}×", "yes" if ours["value"] == theirs["value"] else "no"
            lines.append(f"| `{expression.replace('|', chr(92) + '|')}` | {cells[0]} | {cells[1]} | {ratio} | {same} |")
    if ratios:
        lines += [
            "",
            f"The least ratio is {min(ratios):.2f}, of {len(ratios)}; {sum(ratio < 1 for ratio in ratios)} are below 1.",
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
