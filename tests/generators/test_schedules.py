"""Random schedules of streams, events and forks give what their actions give one after the other (`schedules.py`)."""

import pytest
import schedules

pytestmark = pytest.mark.host_access

#: A few dozen; `python tests/generators/schedules.py 0 5000` checks more.
SEEDS = range(40)


def test_random_schedules(arch):
    wrong = [problem for seed in SEEDS if (problem := schedules.check(seed, arch))]
    assert not wrong, "\n".join(wrong[:3])


@pytest.mark.no_device
def test_schedules_do_what_they_are_for():
    """They fork, order streams in every way, and leave streams unordered where they may be."""
    drawn = [schedules.Schedule(seed, 10) for seed in range(50)]
    kinds = {action[0] for schedule in drawn for action in schedule.actions}
    assert kinds >= {"launch", "numpy", "fill", "copy", "read", "read_on", "write", "element", "renew"}
    assert kinds >= {"record", "wait", "synchronize", "synchronize_event", "sync", "sync_all"}
    launched = {action[1] for schedule in drawn for action in schedule.actions if action[0] == "launch"}
    assert launched == set(schedules.KERNELS)
    unordered = 0
    for schedule in drawn:
        known = [schedule.over(stream) for stream in range(schedules.STREAMS)]
        unordered += sum(int((over < schedule.told).sum()) for over in known)
    assert unordered > 5 * len(drawn)


@pytest.mark.no_device
def test_a_missing_order_would_be_seen():
    """Without its waits a schedule has other results in another order: the check is sharp."""
    schedule = schedules.Schedule(3, 10)
    expected = schedules.in_order(schedule, 3)
    schedule.actions = [action for action in reversed(schedule.actions)]
    found = schedules.in_order(schedule, 3)
    assert any((one != other).any() for one, other in zip(found[1], expected[1], strict=True))
