"""The code blocks of the README and of the guide run, in order, as one program per page.

A page becomes a Python file whose line numbers are the page's own, so that a failure names the line of the document. A
block fenced as `output` must be what the Python block before it printed.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.no_device

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("**/*.md"))]
END_OF_BLOCK = "\x1e"

# What says where things are in the repository.
MAPS = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "design").glob("*.md"))]
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md")]

FENCE = re.compile(r"^```(?P<info>\w*)[^\n]*\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    """Every fenced block of a page: the line that its body begins on, its language, its text."""
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        yield text.count("\n", 0, match.start("body")), match["info"], match["body"]


def as_program(page):
    """The Python blocks, each on its page's lines, and a mark printed where each ends."""
    lines = [""] * (page.read_text(encoding="utf-8").count("\n") + 2)
    for start, info, body in blocks(page):
        if info == "python":
            code = body.splitlines()
            lines[start : start + len(code)] = code
            lines[start + len(code)] = f"print({END_OF_BLOCK!r}, end='', flush=True)"
    return "\n".join(lines)


def expected_outputs(page):
    """For each Python block, the text of the `output` block that follows it, or None."""
    expected = []
    for _, info, body in blocks(page):
        if info == "python":
            expected.append(None)
        elif info == "output":
            assert expected, f"{page.name}: an output block before any Python block"
            expected[-1] = body
    return expected


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_blocks_run_and_print_what_the_page_says(page, tmp_path):
    program = tmp_path / f"{page.stem.replace('-', '_')}.py"
    program.write_text(as_program(page), encoding="utf-8")
    done = subprocess.run([sys.executable, program], cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, f"{page.relative_to(ROOT)} (line numbers are the page's):\n{done.stderr}"
    printed = done.stdout.split(END_OF_BLOCK)[:-1]
    expected = expected_outputs(page)
    assert len(printed) == len(expected)
    for number, (got, wanted) in enumerate(zip(printed, expected)):
        if wanted is not None:
            got = "".join(line for line in got.splitlines(keepends=True) if not line.startswith("[Octants]"))
            assert got == wanted, f"{page.relative_to(ROOT)}: what Python block {number + 1} printed"


LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)(?:#[^)]*)?\)")
PLACE = re.compile(r"`((?:crates|docs|tests|benches|scripts|python|filetests|examples)/[\w./-]*[\w/])`")


def test_links_between_documents_lead_somewhere():
    broken = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in DOCUMENTS
        for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
        if not (page.parent / link).exists()
    ]
    assert not broken


def test_places_that_the_maps_name_are_there():
    gone = [
        f"{page.relative_to(ROOT)}: {place}"
        for page in MAPS
        for place in PLACE.findall(page.read_text(encoding="utf-8"))
        if not (ROOT / place).exists()
    ]
    assert not gone
