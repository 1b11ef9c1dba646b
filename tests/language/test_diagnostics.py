"""Every wrong program of ``tests/language/diagnostics`` gives the exception that its first line names, with the text beside it.

``OCTANTS_BLESS=1 pytest tests/language/test_diagnostics.py`` writes the texts anew; read the difference before committing it.
"""

import os
import re
import runpy
import traceback
import warnings
from pathlib import Path

import pytest

import octants as oc

pytestmark = pytest.mark.no_device

FOLDER = Path(__file__).parent / "diagnostics"
PROGRAMS = sorted(FOLDER.glob("*.py"))


def shown(error: BaseException) -> str:
    """The exception's text without what differs between machines and versions of Python."""
    text = str(error).replace(f"{FOLDER}{os.sep}", "")
    text = re.sub(r" at 0x[0-9a-f]+", " at 0x…", text)
    # Newer versions of Python underline parts of the lines in their own tracebacks.
    text = "\n".join(
        line.rstrip() for line in text.splitlines() if not re.fullmatch(r"\s*[\^~]+\s*", line) or "|" in line
    )
    return f"{type(error).__name__}\n{text}\n"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_wrong_program(program):
    expected_class = re.match(r"# raises (\w+)", program.read_text()).group(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as caught:
            runpy.run_path(str(program))
    error = caught.value
    assert type(error).__name__ == expected_class, "".join(traceback.format_exception(error))
    snapshot = program.with_suffix(".txt")
    found = shown(error)
    if os.environ.get("OCTANTS_BLESS"):
        snapshot.write_text(found)
    assert snapshot.exists(), f"no text for {program.stem} yet; run with OCTANTS_BLESS=1\n{found}"
    assert found == snapshot.read_text()
    # The session stays usable after every mistake.
    assert oc.ndarray(oc.f32, 4).shape == (4,)


def test_there_are_many_wrong_programs():
    assert len(PROGRAMS) >= 40


def test_every_error_has_a_code_that_can_be_explained():
    codes = set(re.findall(r"\[(OC\d{4})\]", "".join(path.read_text() for path in FOLDER.glob("*.txt"))))
    assert len(codes) > 30
    for code in codes:
        assert code in oc.explain(code)


def test_lines_of_a_file_from_windows_are_shown_as_others(tmp_path):
    text = "# raises OctantsNameError\nimport octants as oc\n\n\n@oc.kernel\ndef f() -> oc.i32:\n    return (1 +\n        missing)\n\n\nf()\n"
    texts = []
    for ends in ("\n", "\r\n"):
        program = tmp_path / f"program{len(ends)}.py"
        program.write_bytes(text.replace("\n", ends).encode())
        with pytest.raises(oc.OctantsCompilationError) as caught:
            runpy.run_path(str(program))
        texts.append(shown(caught.value).replace(program.name, "program.py"))
    assert "missing" in texts[0] and texts[0] == texts[1]


def test_programs_in_a_folder_named_like_the_package_are_the_users(tmp_path):
    program = tmp_path / "octants" / "program.py"
    program.parent.mkdir()
    program.write_text(
        "import octants as oc\n\n@oc.kernel\ndef f() -> oc.i32:\n    total = 0\n"
        "    for i in oc.static(range(100)):\n        total += i\n    return total\n\nf()\n"
    )
    oc.init(log_level="error", unrolling_limit=32)
    with pytest.warns(SyntaxWarning, match="OC10"):
        runpy.run_path(str(program))
