"""Copies the table that the benchmarks wrote (benches/results/table.md) into the README, between its two marks."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MARKS = re.compile(r"(<!-- benchmarks:.*?-->\n).*?(<!-- end of benchmarks -->)", re.DOTALL)


def main() -> None:
    table = ROOT / "benches" / "results" / "table.md"
    if not table.exists():
        sys.exit(f"{table.relative_to(ROOT)} does not exist; run the benchmarks first")
    readme = ROOT / "README.md"
    body = table.read_text(encoding="utf-8").strip()
    text, count = MARKS.subn(lambda marks: f"{marks[1]}{body}\n{marks[2]}", readme.read_text(encoding="utf-8"))
    if count != 1:
        sys.exit("README.md does not have the two marks of the benchmark table, once")
    readme.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
