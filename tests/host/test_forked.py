"""Forked children: each is right, or is told in one line that it cannot use what its parent has opened; the parent goes on."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

FORKING = Path(__file__).with_name("forking.py")

#: Seconds that a program of forks may take.
LIMIT = 900


def outcomes(name: str, forks: int, device: str = "cpu") -> dict[int, int]:
    """How often children left in which way; 0 is right, 3 is told."""
    command = [sys.executable, str(FORKING), name, str(forks), device]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"\[.*\]", done.stdout)
    assert found, done.stdout + done.stderr
    seen = dict(eval(found.group()))  # a list of pairs of numbers
    assert set(seen) <= {0, 3}, done.stdout + done.stderr
    return seen


@pytest.mark.no_device
@pytest.mark.parametrize("name", ["quiet", "resetting", "importing"])
def test_children_of_a_process_that_computes_nothing_are_right(name):
    assert outcomes(name, 100) == {0: 100}


@pytest.mark.alone
@pytest.mark.no_device
@pytest.mark.timeout(LIMIT)
def test_a_thousand_forks_while_another_thread_compiles():
    seen = outcomes("compiling", 1000)
    # Compilations of milliseconds are waited for; on a busy machine some are longer than that.
    assert seen.get(0, 0) > 900, seen


@pytest.mark.alone
@pytest.mark.no_device
def test_forks_while_another_thread_launches_or_starts_sessions():
    assert outcomes("launching", 200).get(0, 0) > 100
    assert outcomes("starting", 50).get(0, 0) > 25


@pytest.mark.no_device
@pytest.mark.parametrize("name", ["pending", "letting_go"])
def test_a_child_of_a_process_at_work_is_told_and_hangs_nowhere(name):
    assert outcomes(name, 3) == {3: 3}


DESTROYING = """
import os, sys, threading, warnings
import octants as oc

warnings.simplefilter("ignore")
oc.init(arch=oc.cpu, log_level="error")


@oc.kernel
def work(n: oc.i32) -> oc.i32:
    total = 0
    for k in range(n):
        total += k & 3
    return total


def kept():
    # Bytes that stay, of four trees of 64 MiB that are destroyed.
    def resident():
        with open("/proc/self/statm") as numbers:
            return int(numbers.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = resident()
    for _ in range(4):
        builder, field = oc.FieldsBuilder(), oc.field(oc.i32)
        builder.dense(oc.i, 16 << 20).place(field)
        tree = builder.finalize()
        field.fill(1)
        tree.destroy()
    return resident() - before


done = False


def launch():
    while not done:
        work(200_000)


kept()
thread = threading.Thread(target=launch)
thread.start()
codes = []
for _ in range(5):
    child = os.fork()
    if child == 0:
        try:
            os._exit(1 if kept() > 128 << 20 else 0)
        except BaseException:
            os._exit(3)  # It was told that it cannot use what its parent has opened.
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
done = True
thread.join()
print(codes)
sys.exit(1 in codes or any(code < 0 for code in codes))
"""


@pytest.mark.no_device
def test_launches_of_a_parent_keep_no_memory_of_a_child(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(DESTROYING)
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.device_memory
def test_a_device_process_is_its_parents_own(fresh_session):
    assert outcomes("quiet", 4, "process") == {3: 4}
    # A child that ends its session does not end the parent's device.
    assert outcomes("resetting", 4, "process") == {0: 4}


@pytest.mark.cuda_only
def test_a_gpu_is_its_parents_own():
    assert outcomes("quiet", 4, "cuda") == {3: 4}
    assert outcomes("resetting", 4, "cuda") == {0: 4}
