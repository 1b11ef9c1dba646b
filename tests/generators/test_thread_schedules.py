"""Random schedules of threads, streams, interrupts and resets give the values of their actions in order (`thread_schedules.py`)."""

import pytest
import thread_schedules

pytestmark = pytest.mark.host_access

#: A few; `python tests/generators/thread_schedules.py 0 --seconds 3600` checks them for an hour.
SEEDS = (0, 6)


def test_random_schedules_of_threads(arch):
    right, text = thread_schedules.batch(*SEEDS, arch)
    assert right, text
