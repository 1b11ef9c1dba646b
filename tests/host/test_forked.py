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


@pytest.mark.device_memory
def test_a_device_process_is_its_parents_own(fresh_session):
    assert outcomes("quiet", 4, "process") == {3: 4}
    # A child that ends its session does not end the parent's device.
    assert outcomes("resetting", 4, "process") == {0: 4}


@pytest.mark.cuda_only
def test_a_gpu_is_its_parents_own():
    assert outcomes("quiet", 4, "cuda") == {3: 4}
    assert outcomes("resetting", 4, "cuda") == {0: 4}
