"""Machine code of GPUs on disk: found by other processes, made anew where it changed, as good as what the first process made."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.cuda_only

#: A module of one function, one with functions of its own (kept as PTX), library functions, a fork, a sum and a gradient.
PROGRAM = """
import numpy as np
import octants as oc

oc.init(arch=oc.cuda, enable_fallback=False, log_level="warn")
FACTOR = 3
IntArray = oc.types.ndarray(dtype=oc.i32, ndim=1)
FloatArray = oc.types.ndarray(dtype=oc.f32, ndim=1)
x = oc.field(oc.f32, shape=8, needs_grad=True)
loss = oc.field(oc.f32, shape=(), needs_grad=True)

@oc.real_func
def fibonacci(n: oc.i32) -> oc.i32:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

@oc.kernel
def plain(a: IntArray):
    for i in a:
        a[i] = i * FACTOR

@oc.kernel
def recursive(a: IntArray):
    for i in a:
        a[i] += fibonacci(i)

@oc.kernel
def library(a: FloatArray):
    for i in a:
        a[i] = oc.round(100 * (oc.sin(a[i]) ** 2 + oc.cos(a[i]) ** 2))

@oc.kernel
def branches(a: IntArray, b: IntArray):
    with oc.stream_parallel():
        for i in a:
            a[i] += 1
    with oc.stream_parallel():
        for i in b:
            b[i] += 2

@oc.kernel
def total(a: IntArray) -> oc.i32:
    sum = 0
    for i in a:
        sum += a[i]
    return sum

@oc.kernel
def squares():
    for i in x:
        loss[None] += x[i] ** 2

a, b, c = oc.ndarray(oc.i32, 8), oc.ndarray(oc.i32, 8), oc.ndarray(oc.f32, 8)
plain(a)
recursive(a)
branches(a, b)
library(c)
x.from_numpy(np.arange(8, dtype=np.float32))
squares()
loss.grad[None] = 1
squares.grad()
print(a.to_numpy().tolist(), b.to_numpy().tolist(), c.to_numpy().tolist(), total(a), loss[None], x.grad.to_numpy().tolist())
found = [kernel.compile_statistics()[0]["found"] for kernel in (plain, recursive, library, branches, total, squares)]
print(found)
"""

RESULT = (
    "[1, 5, 8, 12, 16, 21, 27, 35] [2, 2, 2, 2, 2, 2, 2, 2] "
    "[100.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0] 125 140.0 [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]"
)


def run(folder, program=PROGRAM):
    path = folder / "program.py"
    path.write_text(program)
    environment = os.environ | {"OC_OFFLINE_CACHE": "1", "OC_OFFLINE_CACHE_FILE_PATH": str(folder / "kept")}
    done = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, timeout=120, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    values, found = done.stdout.splitlines()
    return values, found.strip("[]").split(", "), done.stderr


def test_a_second_process_finds_machine_code_and_ptx(tmp_path):
    values, found, said = run(tmp_path)
    assert (values, set(found)) == (RESULT, {"False"}), said
    values, found, said = run(tmp_path)
    assert (values, set(found)) == (RESULT, {"True"}), said


def test_what_was_changed_is_made_anew(tmp_path):
    run(tmp_path)
    values, found, _ = run(tmp_path, PROGRAM.replace("return n if n < 2", "return n + 0 * n if n < 1"))
    assert found[1] == "False" and found.count("True") == 5
    values, found, _ = run(tmp_path, PROGRAM.replace("FACTOR = 3", "FACTOR = 2"))
    assert found[0] == "False" and found.count("True") == 5
    assert values.startswith("[1, 4, 6, 9, 12, 16, 21, 28]")


def test_damaged_machine_code_costs_a_compilation(tmp_path):
    run(tmp_path)
    for path in sorted(path for path in (tmp_path / "kept").rglob("*") if len(path.name) == 64):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 4
        path.write_bytes(data)
    values, found, said = run(tmp_path)
    assert (values, set(found)) == (RESULT, {"False"}), said
    assert set(run(tmp_path)[1]) == {"True"}
