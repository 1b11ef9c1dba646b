"""Copies the tables that the benchmarks wrote into the documents, each between its two marks.

`benches/results/table.md` goes into the README; `benches/results/gpu.md`, if there is one, into the README and the guide's page on GPUs.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benches" / "results"


def fill(table: Path, document: Path, mark: str) -> None:
    marks = re.compile(rf"(<!-- {mark}:.*?-->\n).*?(<!-- end of {mark} -->)", re.DOTALL)
    body = table.read_text(encoding="utf-8").strip()
    text, count = marks.subn(lambda found: f"{found[1]}{body}\n{found[2]}", document.read_text(encoding="utf-8"))
    if count != 1:
        sys.exit(f"{document.relative_to(ROOT)} does not have the two marks of {mark}, once")
    document.write_text(text, encoding="utf-8")


def main() -> None:
    if not (RESULTS / "table.md").exists():
        sys.exit("benches/results/table.md does not exist; run the benchmarks first")
    fill(RESULTS / "table.md", ROOT / "README.md", "benchmarks")
    if (RESULTS / "gpu.md").exists():
        for document in (ROOT / "README.md", ROOT / "docs" / "guide" / "gpu.md"):
            fill(RESULTS / "gpu.md", document, "gpu benchmarks")


if __name__ == "__main__":
    main()
