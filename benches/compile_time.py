"""How compile time grows with the length of a kernel.

Each program is written in several sizes and compiled in a fresh process each time; the exponent is the slope between the smallest and
the largest size in a log-log plot: 1 is linear, 2 a square. Run it on a quiet machine: `python benches/compile_time.py`.
"""

import argparse
import math
import pathlib
import subprocess
import sys
import tempfile

HEAD = "import octants as oc\n\n\n@oc.kernel\ndef k(x: oc.types.ndarray({dtype}, 1)):\n"


def straight(lines):
    """Assignments to variables, each from the one before."""
    body = "\n".join(f"    a{i + 1} = a{i} * 1.5 + x[{i % 64}]" for i in range(lines))
    return HEAD.format(dtype="oc.f32") + f"    a0 = x[0]\n{body}\n    x[0] = a{lines}\n"


def stores(lines):
    """Assignments to elements of an array."""
    body = "\n".join(f"    x[{i % 64}] = x[{(i + 1) % 64}] * 1.5 + x[{i * 7 % 64}]" for i in range(lines))
    return HEAD.format(dtype="oc.f32") + body + "\n"


def branches(count):
    """`if` after `if`."""
    body = "\n".join(f"    if x[{i % 64}] > {i}.5:\n        a += x[{(i + 1) % 64}]" for i in range(count))
    return HEAD.format(dtype="oc.f32") + f"    a = 0.0\n{body}\n    x[0] = a\n"


def loops(count):
    """`while` loops, one behind the other."""
    loop = "    i{0} = 0\n    while i{0} < x[{1}]:\n        i{0} += 1\n        x[{2}] += i{0}\n"
    body = "".join(loop.format(i, i % 64, (i + 1) % 64) for i in range(count))
    return HEAD.format(dtype="oc.i32") + body


def parallel_loops(count):
    """Parallel loops, one behind the other."""
    loop = "    for i in range({0}):\n        x[i] = x[i] * 1.5 + {0}.0\n"
    return HEAD.format(dtype="oc.f32") + "".join(loop.format(i % 64) for i in range(count))


def body(lines):
    """The same statement again and again in the body of a parallel loop."""
    text = "\n".join(f"        x[i] = x[i] * {1 + i / 1000:.3f} + {i}.5" for i in range(lines))
    return HEAD.format(dtype="oc.f32") + f"    for i in range(x.shape[0]):\n{text}\n"


FIELDS = """import octants as oc

fields = [oc.field(oc.f32, {count}) for _ in range({count})]


@oc.kernel
def k(x: oc.types.ndarray(oc.f32, 1)):
    for i in range({count}):
        for j in oc.static(range({count})):
            {statement}
"""


def fields(count):
    """A parallel loop that touches many fields."""
    return FIELDS.format(count=count, statement="fields[j][i] = fields[(j + 1) % len(fields)][i] * 2.0 + fields[j][i]")


def totals(count):
    """A parallel loop that adds to an element of each of many fields."""
    return FIELDS.format(count=count, statement="fields[j][j] += i")


def exits(count):
    """`if …: continue` again and again in the body of a parallel loop."""
    text = "\n".join(f"        if i == {i}:\n            x[i] = {i}.5\n            continue" for i in range(count))
    return HEAD.format(dtype="oc.f32") + f"    for i in range(x.shape[0]):\n{text}\n        x[i] += 1.0\n"


def matrix_product(n):
    """The product of two matrices; its size is that of one of them."""
    head = HEAD.format(dtype=f"oc.types.matrix({n}, {n}, oc.f32)")
    return head + "    for i in range(x.shape[0]):\n        x[i] = x[i] @ x[i]\n"


# Each program with its sizes, and how the size follows from the argument.
PROGRAMS = {
    straight: ([1000, 2000, 4000], 1),
    stores: ([1000, 2000, 4000], 1),
    branches: ([500, 1000, 2000], 1),
    loops: ([250, 500, 1000], 1),
    parallel_loops: ([50, 100, 200], 1),
    body: ([1000, 2000, 4000], 1),
    fields: ([150, 300, 600], 1),
    totals: ([150, 300, 600], 1),
    exits: ([500, 1000, 2000], 1),
    matrix_product: ([16, 24, 32], 2),
}

WORKER = """
import sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
import octants as oc
oc.init(arch=oc.cpu, log_level=oc.ERROR)
sys.path.insert(0, sys.argv[1])
import program
x = np.zeros(eval(sys.argv[2]), np.dtype(sys.argv[3]))
begin, cpu = time.perf_counter(), time.process_time()
program.k(x)
print(time.perf_counter() - begin, time.process_time() - cpu)
"""


def measure(program, argument, python):
    text = program(argument)
    shape = f"(4, {argument}, {argument})" if program is matrix_product else "(64,)"
    dtype = "int32" if "i32" in text else "float32"
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "program.py").write_text(text)
        command = [python, "-c", WORKER, folder, shape, dtype]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return tuple(float(word) for word in output.split()[-2:])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", help="programs whose name contains this")
    parser.add_argument("--rounds", type=int, default=3, help="the best of this many counts")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has octants")
    arguments = parser.parse_args()
    print(f"{'program':16} {'size':>6} {'wall s':>8} {'cpu s':>8}")
    for program, (sizes, dimensions) in PROGRAMS.items():
        if arguments.only and not any(word in program.__name__ for word in arguments.only):
            continue
        best = []
        for size in sizes:
            samples = [measure(program, size, arguments.python) for _ in range(arguments.rounds)]
            wall, cpu = (min(column) for column in zip(*samples, strict=True))
            best.append(cpu)
            print(f"{program.__name__:16} {size:6} {wall:8.3f} {cpu:8.3f}", flush=True)
        growth = dimensions * math.log(sizes[-1] / sizes[0])
        print(f"{program.__name__:16} exponent {math.log(best[-1] / best[0]) / growth:.2f} (cpu time)", flush=True)


if __name__ == "__main__":
    main()
