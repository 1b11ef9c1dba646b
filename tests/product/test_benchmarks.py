"""The programs of the benchmarks can be read: whoever adds one does not wait ten minutes to see that."""

from __future__ import annotations

from pathlib import Path

import pytest

BENCHES = Path(__file__).resolve().parents[2] / "benches"


@pytest.fixture
def programs(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHES))
    from harness import programs

    return programs


def test_every_program_is_complete(programs):
    found = programs.load_all()
    assert {program.name for program in found} == {path.parent.name for path in BENCHES.glob("programs/*/about.py")}
    for program in found:
        assert (program.folder / "kernel.py").exists(), program.name


def test_a_setting_that_nobody_knows_is_refused(programs, monkeypatch, tmp_path):
    monkeypatch.setattr(programs, "FOLDER", tmp_path)
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "about.py").write_text("TITLE = 'odd'\nSPEED = 3\n_OWN = 4\n")
    with pytest.raises(programs.BadProgram, match="unknown SPEED$"):
        programs.load("odd")
