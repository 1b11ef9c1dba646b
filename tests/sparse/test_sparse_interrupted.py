"""What a kernel leaves in a sparse tree that did not come to its end, and what it is still given."""

import os
import subprocess
import sys
import textwrap
import threading

import pytest

import octants as oc


def run(folder, program, *arguments, timeout=120):
    path = folder / "program.py"
    path.write_text(textwrap.dedent(program))
    command = [sys.executable, path, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=os.environ, check=False)


POISON = """
import os, random, signal, threading, time
import octants as oc

signal.signal(signal.SIGINT, signal.default_int_handler)
oc.init(arch=oc.cpu, log_level="error", cpu_max_num_threads=2)
N = 1 << 15
x = oc.field(oc.i32)
blocks = oc.root.pointer(oc.i, N)
blocks.place(x)
values = oc.field(oc.i32)
lists = oc.root.dense(oc.i, 64).dynamic(oc.j, 1 << 14, chunk_size=4)
lists.place(values)


@oc.kernel
def churn():
    for i in range(2 * N):
        x[i % N] = i
    for i in range(2 * N):
        values[i % 64].append(i)
    for i in range(N):
        oc.deactivate(blocks, [i])
    for i in range(64):
        values[i].deactivate()


@oc.kernel
def fill() -> oc.i32:
    n = 0
    for i in range(N):
        x[i] = 1
    for i in x:
        n += 1
    return n


@oc.kernel
def lengths() -> oc.i32:
    n = 0
    for i in range(64):
        values[i].deactivate()
    for i in range(6400):
        values[i % 64].append(1)
    for i in range(64):
        for j in range(values[i].length()):
            n += values[i, j]
    return n


random_times = random.Random(7)
churn()
assert fill() == N and lengths() == 6400
for _ in range(40):
    after = random_times.random() * 0.04
    thread = threading.Thread(target=lambda: (time.sleep(after), os.kill(os.getpid(), signal.SIGINT)))
    try:
        thread.start()
        while True:
            churn()
    except KeyboardInterrupt:
        pass
    thread.join()
    assert fill() == N, fill()
    assert lengths() == 6400, lengths()
print("fine")
"""


@pytest.mark.no_device
def test_ctrl_c_leaves_no_lock_and_no_count_without_its_slot(tmp_path):
    done = run(tmp_path, POISON)
    assert done.stdout == "fine\n", done.stderr


@pytest.mark.host_access
def test_cells_that_a_failed_branch_gave_up_are_used_again(arch):
    oc.init(arch=getattr(oc, arch), log_level="error", debug=True, sparse_memory_limit=1 << 20)
    count = 64
    x, y = oc.field(oc.i32), oc.field(oc.i32, ())
    blocks = oc.root.pointer(oc.i, count)
    blocks.dense(oc.i, 256).place(x)

    @oc.kernel
    def fill():
        for i in range(count):
            x[i * 256] = i

    @oc.kernel
    def fail():
        with oc.stream_parallel():
            y[None] += 1
        with oc.stream_parallel():
            for i in range(count):
                oc.deactivate(blocks, [i])
                # After the cells are marked, before they are cleared.
                assert i < count - 1

    @oc.kernel
    def empty():
        for i in range(count):
            oc.deactivate(blocks, [i])

    # The pool has room for some thousand blocks.
    for _ in range(40 if arch in ("cpu", "cuda") else 20):
        fill()
        with pytest.raises(AssertionError):
            fail()
        fill()
        empty()
    fill()
    assert blocks._num_dynamically_allocated <= 2 * count


RESET = """
import sys, threading, time
import octants as oc

oc.init(arch=getattr(oc, sys.argv[1]), log_level="error")
x = oc.field(oc.i32)
# The first memory of the pool is for about 60 blocks.
blocks = oc.root.pointer(oc.i, 1 << 16)
blocks.dense(oc.i, 1 << 14).place(x)
n = int(sys.argv[2])


@oc.kernel
def make(first: oc.i32, end: oc.i32):
    for i in range(first, end):
        x[i << 14] = i


make(0, 1)
began, ended = threading.Event(), []


def launch():
    began.set()
    try:
        make(1, n)
        ended.append("done")
    except Exception as error:
        ended.append(type(error).__name__)


thread = threading.Thread(target=launch, daemon=True)
thread.start()
began.wait()
time.sleep(float(sys.argv[3]))
begin = time.perf_counter()
oc.reset()
thread.join(60)
assert ended, "the launch does not come back"
assert time.perf_counter() - begin < 30
print(*ended)
oc.init(arch=getattr(oc, sys.argv[1]), log_level="error")
"""


@pytest.mark.device_memory
@pytest.mark.parametrize("after", ["0.0", "0.01", "0.05", "0.2"])
def test_a_launch_that_needs_memory_comes_back_from_a_reset(fresh_session, tmp_path, after):
    count = 20000 if fresh_session == "cuda" else 1500
    done = run(tmp_path, RESET, fresh_session, str(count), after)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in ("done", "OctantsRuntimeError"), done.stdout


@pytest.mark.host_devices("the property destroys a tree of the host's")
def test_a_tree_that_a_launch_has_looked_at_is_not_destroyed_under_it():
    builder = oc.FieldsBuilder()
    x = oc.field(oc.i32)
    builder.dense(oc.i, 1 << 22).place(x)
    tree = builder.finalize()

    class Answer:
        destroys = False

        def __call__(self):
            if self.destroys:
                tree.destroy()
            return 3

    @oc.data_oriented
    class Work:
        def __init__(self):
            self.x = x
            self.answer = Answer()

        @property
        def n(self):
            return self.answer()

        @oc.kernel
        def run(self):
            for i in range(100):
                self.x[i * 4096] += self.n

    work = Work()
    for _ in range(3):
        work.run()
    work.answer.destroys = True
    with pytest.raises(oc.OctantsRuntimeError, match="OC0804"):
        work.run()


@pytest.mark.device_memory
def test_a_launch_is_a_threads_first_call():
    x = oc.field(oc.i32)
    blocks = oc.root.pointer(oc.i, 1 << 12)
    blocks.place(x)
    y = oc.ndarray(oc.i32, (4,))

    @oc.kernel
    def add(a: oc.types.ndarray(ndim=1)):
        for i in a:
            a[i] += 1

    add(y)
    failures = []

    def launch():
        try:
            add(y)
        except Exception as error:
            failures.append(error)

    for _ in range(4):
        thread = threading.Thread(target=launch)
        thread.start()
        thread.join()
    assert not failures and y.to_numpy().tolist() == [5] * 4
