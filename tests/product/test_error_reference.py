"""The programs of the error reference: each wrong one gives the code that it stands under, each right one runs without complaint."""

import re
import runpy
import subprocess
import sys
import warnings
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import octants as oc

pytestmark = pytest.mark.no_device

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "errors.md"
PRELUDE = "import numpy as np\nimport octants as oc\n\n"


def sections():
    """Every code with its two programs."""
    for section in re.split(r"^### ", REFERENCE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        programs = re.findall(r"^```python\n(.*?)^```$", section, flags=re.MULTILINE | re.DOTALL)
        if programs:
            wrong, right = programs
            yield section[:6], wrong, right


SECTIONS = list(sections())


def run(program, path):
    """What a program raised or warned of, as one text."""
    path.write_text(PRELUDE + program, encoding="utf-8")
    oc.init(log_level="error")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            runpy.run_path(str(path))
            said = []
        except Exception as error:
            said = [f"{type(error).__name__}: {error}"]
    return "\n".join(said + [str(warning.message) for warning in caught])


@pytest.mark.parametrize(("code", "wrong", "right"), SECTIONS, ids=[code for code, *_ in SECTIONS])
def test_programs_of_a_code(code, wrong, right, tmp_path):
    said = run(wrong, tmp_path / f"{code}_wrong.py")
    assert re.search(r"\[(OC\d{4})\]", said), f"the wrong program gives no code:\n{said}"
    assert re.search(r"\[(OC\d{4})\]", said)[1] == code, said
    assert run(right, tmp_path / f"{code}_right.py") == ""


def test_most_codes_have_programs():
    titles = re.findall(r"^### OC\d{4}", REFERENCE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(SECTIONS) >= 0.8 * len(titles)


def test_explain_prints_both_programs():
    shown = subprocess.run(
        [sys.executable, "-m", "octants", "explain", "OC0202"], capture_output=True, text=True, check=True
    ).stdout
    assert shown.startswith("OC0202: ")
    assert "Wrong:\n\n    @oc.kernel\n" in shown and "Right:\n\n    @oc.kernel\n" in shown
    for code, wrong, right in SECTIONS:
        text = re.sub(r"^    ", "", oc.explain(code), flags=re.MULTILINE)
        assert wrong in text and right in text


def test_there_is_a_command(capsys, monkeypatch):
    (command,) = entry_points(group="console_scripts", name="octants")
    monkeypatch.setattr(sys, "argv", ["octants", "explain", "OC0904"])
    with pytest.raises(SystemExit) as ended:
        command.load()()
    assert not ended.value.code
    assert capsys.readouterr().out.startswith("OC0904: ")
