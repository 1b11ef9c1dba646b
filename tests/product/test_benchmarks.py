"""The programs of the benchmarks can be read: whoever adds one does not wait ten minutes to see that."""

from __future__ import annotations

import subprocess
import zipfile
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


@pytest.fixture
def comparison(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHES))
    from harness import figures, regressions

    def made(older, newer, failures=None):
        figure = figures.Figure("some", "some", "launch", "s", ())
        return regressions.Comparison(figure, {"older": older, "newer": newer}, failures or {})

    return made


@pytest.mark.parametrize(
    ("older", "newer", "verdict"),
    [
        ([1.0, 1.01, 1.0], [1.0, 1.0, 1.01], "same"),
        ([1.0, 1.0, 1.0], [1.03, 1.03, 1.03], "slower"),
        ([1.0, 1.0, 1.0], [1.015, 1.015, 1.015], "same"),  # less than two builds of one commit differ by
        ([1.0, 1.1, 1.2], [1.05, 1.12, 1.2], "same"),  # each process is elsewhere
        ([1.0, 1.0, 1.5], [1.1, 1.1, 1.9], "slower"),  # other work held one process up
        ([1.0, 1.0, 1.0], [1.0, 1.3, 1.3], "same"),  # the newer build can be as fast
        ([1.3, 1.3, 1.3], [1.0, 1.0, 1.01], "faster"),
    ],
)
def test_a_figure_is_slower_only_by_more_than_processes_of_one_build_differ(comparison, older, newer, verdict):
    one = comparison(older, newer)
    assert {"same": (False, False), "slower": (True, False), "faster": (False, True)}[verdict] == (
        one.slower(),
        one.faster(),
    )


def test_what_only_the_newer_build_fails_at_is_broken(comparison):
    assert comparison([1.0], [], {"newer": "why"}).broken()
    assert not comparison([], [1.0], {"older": "why"}).broken()
    assert not comparison([], [], {"older": "why", "newer": "why"}).broken()


def test_a_commit_is_built_from_its_own_files_and_once(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(BENCHES))
    from harness import builds, venvs

    repository = tmp_path / "repository"
    (repository / "scripts").mkdir(parents=True)
    (repository / "scripts" / "build_wheel.py").write_text(
        "import os, pathlib, zipfile\n"
        "assert pathlib.Path(os.environ['CARGO_TARGET_DIR']).parent == pathlib.Path.cwd().parent\n"
        "pathlib.Path('dist').mkdir()\n"
        "with zipfile.ZipFile('dist/octants-1.whl', 'w') as wheel: wheel.write('octants.py')\n"
    )

    def git(*arguments):
        identity = ["-c", "user.name=test", "-c", "user.email=test@test"]
        subprocess.run(["git", "-C", str(repository), *identity, *arguments], check=True, capture_output=True)

    git("init", "--quiet")
    for version in (1, 2, 3):
        (repository / "octants.py").write_text(f"version = {version}\n")
        git("add", "--all")
        git("commit", "--quiet", "--message", f"version {version}")
    monkeypatch.setattr(venvs, "REPOSITORY", repository)
    monkeypatch.setattr(venvs, "HOME", tmp_path / "venvs")
    for revision, version in (("HEAD~1", 2), ("HEAD~2", 1)):
        commit, described = builds.commit_of(revision)
        assert described.endswith(f"version {version}")
        assert (builds.of_commit(commit) / "octants.py").read_text() == f"version = {version}\n"
    monkeypatch.setattr(zipfile.ZipFile, "extractall", None)  # a second build would call it
    assert (builds.of_commit(commit) / "octants.py").read_text() == "version = 1\n"
    with pytest.raises(venvs.Unavailable, match="git log"):
        builds.commit_of("no such commit")
