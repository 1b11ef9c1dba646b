"""Random programs whose objects change between launches give what Python gives (`changing_members.py`)."""

import changing_members
import pytest

import octants as oc

pytestmark = [pytest.mark.no_device, pytest.mark.filterwarnings("ignore")]

#: A few dozen; `python tests/generators/changing_members.py 0 2000` checks more.
SEEDS = range(30)


def test_random_changes_are_seen(tmp_path):
    oc.init(arch=oc.cpu, log_level="error")
    wrong = [problem for seed in SEEDS if (problem := changing_members.check(seed, tmp_path))]
    assert not wrong, "\n".join(wrong[:3])


def test_programs_read_and_change_everything():
    drawn = [changing_members.Program(seed) for seed in range(200)]
    assert {read for program in drawn for kernel in program.kernels for read in kernel} == set(changing_members.READS)
    changed = {change for program in drawn for changes, _ in program.changes for change, _ in changes}
    assert changed == set(changing_members.CHANGES)
