"""How much memory sparse fields take: pools that grow, are used again, and end by an error."""

import os
import subprocess
import sys

import numpy as np
import pytest

import octants as oc


def blocks_of(count, width=1024):
    x = oc.field(oc.i32)
    blocks = oc.root.pointer(oc.i, count)
    blocks.dense(oc.i, width).place(x)

    @oc.kernel
    def make(first: oc.i32, end: oc.i32):
        for i in range(first, end):
            x[i * width + i % width] = i + 1

    @oc.kernel
    def total() -> oc.i64:
        s = oc.cast(0, oc.i64)
        for i in blocks:
            s += oc.cast(x[i * width + i % width], oc.i64)
        return s

    return x, blocks, make, total


@pytest.mark.host_access
def test_a_pool_grows_while_a_kernel_runs():
    # The first memory of a pool is for about 60 of these; a loop over the tree must not touch what has none.
    _, blocks, make, total = blocks_of(1 << 14, 1 << 14)
    made = 0
    for end in (1, 60, 70, 400):
        make(made, end)
        made = end
        assert blocks._num_dynamically_allocated == end
    assert total() == made * (made + 1) // 2
    backed = blocks._backed_bytes
    if backed is not None:
        active = made * ((1 << 14) + 3) * 4
        assert active <= backed <= 1.2 * active + (8 << 20)


@pytest.mark.host_access
def test_lists_grow_while_a_kernel_runs():
    values = oc.field(oc.i32)
    # Chunks of 64 KiB, of which the first memory holds about 60.
    lists = oc.root.dense(oc.i, 200).dynamic(oc.j, 1 << 16, chunk_size=1 << 14)
    lists.place(values)
    n = 1000

    @oc.kernel
    def fill():
        for k in range(n):
            oc.append(lists, [k % 200], k)

    @oc.kernel
    def total() -> oc.i64:
        s = oc.cast(0, oc.i64)
        for i in range(200):
            for j in range(oc.length(lists, [i])):
                s += oc.cast(values[i, j], oc.i64)
        return s

    fill()
    assert total() == n * (n - 1) // 2 and lists._num_dynamically_allocated == 200


@pytest.mark.host_access
def test_rebuilding_takes_no_more_memory(arch):
    _, blocks, make, total = blocks_of(4096, 64)
    found = []
    for turn in range(1000 if arch in ("cpu", "cuda") else 12):
        first = turn * 7 % 100
        make(first, first + 150)
        blocks.deactivate_all()
        found.append((blocks._num_dynamically_allocated, blocks._backed_bytes))
    assert found[-1] == found[0] == (150, found[0][1])
    make(0, 10)
    assert total() == 55


@pytest.mark.host_access
def test_memory_that_ends_is_an_error_and_what_was_made_stays():
    oc.init(arch=oc.cfg.arch, sparse_memory_limit=1 << 18, log_level="error")
    x, blocks, make, total = blocks_of(1 << 8, 1024)
    with pytest.raises(RuntimeError, match=r"the pool of a pointer node is full, all \d+ slots .*sparse_memory_limit"):
        make(0, 256)
    room = blocks._num_dynamically_allocated
    assert (1 << 18) / room == pytest.approx(1024 * 4, rel=0.05)
    found = x.to_numpy().reshape(-1, 1024)
    active = np.flatnonzero(found.any(axis=1))
    assert len(active) <= room and np.array_equal(found[active, active], active + 1)
    blocks.deactivate_all()
    make(0, room)
    assert total() == room * (room + 1) // 2


@pytest.mark.host_access
def test_trees_that_grow_come_and_go():
    for _ in range(3):
        builder = oc.FieldsBuilder()
        x = oc.field(oc.i32)
        builder.pointer(oc.i, 1 << 14).dense(oc.i, 1 << 14).place(x)
        tree = builder.finalize()

        @oc.kernel
        def make(x: oc.template()):
            for i in range(200):
                x[i << 14] = i

        make(x)
        tree.destroy()
        with pytest.raises(RuntimeError):
            make(x)


@pytest.mark.no_device
def test_wrong_limits():
    for wrong in (-1, "much", 1.5):
        with pytest.raises((TypeError, ValueError)):
            oc.init(arch=oc.cpu, sparse_memory_limit=wrong)


PROGRAM = """
import octants as oc

def resident():
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmRSS"))

oc.init(arch=oc.cpu, log_level="error")
x = oc.field(oc.f32)
oc.root.pointer(oc.ij, 1024).pointer(oc.ij, 4).bitmasked(oc.ij, 16).place(x)

@oc.kernel
def make(first: oc.i32, end: oc.i32):
    for i, j, k, l in oc.ndrange((first, end), 256, 16, 16):
        x[i * 16 + k, j * 64 + l] = 1.0

make(0, 1)
before = resident()
make(0, 600)
# Cells with their marks, in blocks of 4 by 4 of which each holds as many entries as it may.
print(resident() - before, 600 * 256 * (16 * 16 * 5), 150 * 256 * 4 * 16)
"""


@pytest.mark.no_device
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="asks Linux how much memory a process has")
def test_a_field_takes_the_memory_of_what_is_active(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=True)
    taken, cells, tree = map(int, done.stdout.split())
    assert cells <= taken <= 1.2 * (cells + tree) + (8 << 20)
