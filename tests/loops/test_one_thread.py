"""Sessions with one thread, whose launches need no atomic instructions while nothing runs beside them."""

import contextlib
import io
import threading

import numpy as np
import pytest

import octants as oc


@pytest.fixture(autouse=True)
def one_thread():
    oc.init(arch=oc.cpu, cpu_max_num_threads=1, log_level="error")


def text_of(run):
    """The optimised code of what is compiled in a new session."""
    oc.init(
        arch=oc.cpu, cpu_max_num_threads=1, log_level="error", print_kernel_llvm_ir_optimized=True, offline_cache=False
    )
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        run()
    return out.getvalue()


def test_updates_of_fields_are_plain_and_those_of_the_programs_arrays_are_not():
    def make():
        x = oc.field(oc.i32, shape=8)

        @oc.kernel
        def count(n: oc.i32):
            for i in range(n):
                x[i * i % 7] += oc.atomic_add(x[7], 1)

        @oc.kernel
        def count_in(a: oc.types.ndarray(oc.i32, 1)):
            for i in range(a.shape[0]):
                a[i * i % 7] += oc.atomic_add(a[7], 1)

        return count, count_in

    field, array = text_of(lambda: make()[0](100)), text_of(lambda: make()[1](np.zeros(8, np.int32)))
    assert "atomicrmw" not in field and "atomicrmw" in array


@pytest.mark.parametrize("op", ["add", "sub", "mul", "min", "max", "and", "or", "xor"])
def test_each_update_gives_the_old_value(op):
    x, old = oc.field(oc.i32, shape=4), oc.field(oc.i32, shape=64)
    update = getattr(oc, f"atomic_{op}")

    @oc.kernel
    def run():
        for i in range(64):
            old[i] = update(x[i % 4], i + 3)

    model = {
        "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "min": min, "max": max,
        "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
    }[op]  # fmt: skip
    x.fill(21)
    run()
    cells, seen = [21] * 4, []
    for i in range(64):
        seen.append(cells[i % 4])
        cells[i % 4] = (model(cells[i % 4], i + 3) + 2**31) % 2**32 - 2**31
    assert x.to_numpy().tolist() == cells and old.to_numpy().tolist() == seen


def test_vectors_of_three_are_added_whole():
    v = oc.Vector.field(3, oc.f32, shape=5)

    @oc.kernel
    def run():
        for i in range(1000):
            v[i % 5] += oc.Vector([1.0, 2.0, i % 3])

    run()
    thirds = [sum(i % 3 for i in range(1000) if i % 5 == k) for k in range(5)]
    assert v.to_numpy().tolist() == [[200.0, 400.0, float(third)] for third in thirds]


def test_threads_that_launch_at_once_lose_no_update():
    x = oc.field(oc.i32, shape=3)
    n, rounds, threads = 20_000, 20, 4

    @oc.kernel
    def count():
        for i in range(n):
            x[i % 3] += 1

    def work():
        for _ in range(rounds):
            count()

    count()
    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    work()
    for worker in workers:
        worker.join()
    assert x.to_numpy().sum() == n * (1 + rounds * (threads + 1))


def test_streams_beside_the_default_one_lose_no_update():
    x = oc.field(oc.i32, shape=3)
    n, rounds = 20_000, 20

    @oc.kernel
    def count():
        for i in range(n):
            x[i % 3] += 1

    streams = [oc.create_stream() for _ in range(2)]
    for _ in range(rounds):
        count()
        for stream in streams:
            count(qd_stream=stream)
    for stream in streams:
        stream.synchronize()
    assert x.to_numpy().sum() == n * rounds * 3


def test_branches_lose_no_update():
    x = oc.field(oc.i32, shape=3)
    n = 200_000

    @oc.kernel
    def count():
        with oc.stream_parallel():
            for i in range(n):
                oc.atomic_add(x[i % 3], 1)
        with oc.stream_parallel():
            for i in range(n):
                oc.atomic_add(x[i % 3], 1)

    for _ in range(5):
        count()
    oc.sync()
    assert x.to_numpy().sum() == 2 * n * 5


def test_lists_grow_and_shrink():
    values = oc.field(oc.i32)
    lists = oc.root.pointer(oc.i, 16).dynamic(oc.j, 1024, chunk_size=8)
    lists.place(values)

    @oc.kernel
    def fill(n: oc.i32):
        for k in range(n):
            values[k % 16].append(k)

    @oc.kernel
    def total() -> oc.i32:
        s = 0
        for i, j in values:
            s += values[i, j]
        return s

    for n in (1000, 10, 5000):
        lists.parent().deactivate_all()
        fill(n)
        assert total() == n * (n - 1) // 2
