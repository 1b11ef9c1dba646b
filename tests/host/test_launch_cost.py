"""What a launch does beside its work: it allocates nothing, whatever kinds of arguments it has."""

import os
import shutil
import subprocess
import sys

import pytest

#: Counts calls of the allocator, in place of the C library's functions.
COUNTER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

static __thread long count;
long allocations(void) { return count; }

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
void *malloc(size_t size) { count++; return __libc_malloc(size); }
void *calloc(size_t n, size_t size) { count++; return __libc_calloc(n, size); }
void *realloc(void *old, size_t size) { count++; return __libc_realloc(old, size); }
void *memalign(size_t align, size_t size) { count++; return __libc_memalign(align, size); }
void *aligned_alloc(size_t align, size_t size) { count++; return __libc_memalign(align, size); }
int posix_memalign(void **out, size_t align, size_t size) {
    count++;
    *out = __libc_memalign(align, size);
    return *out == NULL ? 12 : 0;
}
"""

PROGRAM = """
import ctypes
import dataclasses

import numpy as np
import octants as oc

oc.init(arch=oc.cpu, log_level="error", offline_cache=False)
Floats = oc.types.ndarray(dtype=oc.f32, ndim=1)
counter = ctypes.CDLL(None).allocations
counter.restype = ctypes.c_long


def floats():
    return oc.ndarray(oc.f32, 4)


def count(kernel, *arguments):
    for _ in range(10):
        kernel(*arguments)
    # What Python itself allocates for a call of a function beside what the kernel does is in the loop's first rounds.
    begin = counter()
    for _ in range(1000):
        kernel(*arguments)
    print(kernel.__name__, counter() - begin)


@oc.kernel
def arrays(a: Floats, b: Floats, c: Floats, s: oc.f32, n: oc.i32):
    for i in range(n):
        a[i] = b[i] * s + c[i]


count(arrays, floats(), floats(), floats(), 2.0, 4)
host = [np.zeros(4, np.float32) for _ in range(3)]


@oc.kernel
def numpy_arrays(a: Floats, b: Floats, c: Floats, s: oc.f32, n: oc.i32):
    for i in range(n):
        a[i] = b[i] * s + c[i]


count(numpy_arrays, *host, 2.0, 4)


@dataclasses.dataclass
class Members:
{members}


@dataclasses.dataclass(frozen=True)
class FrozenMembers:
{members}


values = [floats() if n % 2 else float(n) for n in range(20)]


@oc.kernel
def members(m: Members):
    for i in range(1):
{uses}


@oc.kernel
def frozen_members(m: FrozenMembers):
    for i in range(1):
{uses}


count(members, Members(*values))
count(frozen_members, FrozenMembers(*values))


@dataclasses.dataclass
class Arrays:
{arrays}


@oc.kernel
def many_arrays(m: Arrays):
    for i in range(1):
{array_uses}


count(many_arrays, Arrays(*[floats() for _ in range(20)]))


@dataclasses.dataclass(frozen=True)
class Fields:
{fields}


@oc.kernel
def many_fields(m: Fields):
{field_uses}


count(many_fields, Fields(*[oc.field(oc.f32, 4) for _ in range(150)]))


@oc.data_oriented
class Solver:
    def __init__(self):
        self.n = 4
        self.x = oc.field(oc.f32, 4)
        self.y = floats()

    @oc.kernel
    def step(self):
        for i in range(self.n):
            self.x[i] += 1.0

    @oc.kernel
    def copy(self, y: Floats):
        for i in range(self.n):
            y[i] = self.x[i]


solver = Solver()
count(solver.step)
count(solver.copy, solver.y)
"""


def lines(text, numbers):
    return "\n".join(text.format(n=n, a=n + 1) for n in numbers)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler to make the counter with")
def test_launches_allocate_nothing(tmp_path):
    source, library, program = tmp_path / "counter.c", tmp_path / "counter.so", tmp_path / "program.py"
    source.write_text(COUNTER)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    program.write_text(
        PROGRAM.format(
            members=lines("    m{n}: oc.f32\n    m{a}: Floats", range(0, 20, 2)),
            uses=lines("        m.m{a}[i] = m.m{n}", range(0, 20, 2)),
            arrays=lines("    m{n}: Floats", range(20)),
            array_uses=lines("        m.m{n}[i] = 1.0", range(20)),
            fields=lines("    m{n}: oc.template()", range(150)),
            field_uses=lines("    m.m{n}[0] = 1.0", range(150)),
        )
    )
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    counts = dict(line.split() for line in done.stdout.splitlines())
    assert set(counts) == {
        "arrays", "numpy_arrays", "members", "frozen_members", "many_arrays", "many_fields", "step", "copy",
    }  # fmt: skip
    # A few of Python's own: its lists of free objects grow now and then.
    assert {name: int(count) for name, count in counts.items() if int(count) > 20} == {}, counts
