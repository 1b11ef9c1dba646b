"""Copies the tables that the benchmarks wrote into the documents, each between its two marks.

`benches/results/table.md` goes into the page on performance; `benches/results/gpu.md`, if there is one, there and into the guide's page on GPUs. The README
shows ten figures of both.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benches" / "results"


#: The rows of each table that the README shows.
CPU_ROWS = (
    "import",
    "compile MPM-88 substep, fields",
    "launch, four ndarrays and two scalars",
    "saxpy",
    "stencil, fields",
    "MPM-88 substep, fields",
    "3x3 SVD",
)
GPU_ROWS = ("saxpy, 2²⁸ f32", "n-body, 65,536 bodies", "MPM-88, fields, 1M particles, 512²")


def rows(table: Path) -> dict[str, dict[str, str]]:
    """The first table of a file: its rows by name, the cells of each by column."""
    lines = [
        [cell.strip() for cell in line.strip("| \n").split("|")]
        for line in table.read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    ]
    return {cells[0]: dict(zip(lines[0], cells, strict=True)) for cells in lines[2:]}


def ten_figures() -> str:
    """Some rows of both tables."""
    lines = [
        "| on a processor of two cores | octants | quadrants | taichi | numba | C |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    cpu = rows(RESULTS / "table.md")
    for name in CPU_ROWS:
        lines.append(
            "| "
            + " | ".join([name, *(cpu[name][column] for column in ("octants", "quadrants", "taichi", "numba", "C"))])
            + " |"
        )
    if (RESULTS / "gpu.md").exists():
        gpu = rows(RESULTS / "gpu.md")
        lines += ["", "| on a GPU | octants | quadrants | torch |", "| --- | ---: | ---: | ---: |"]
        for name in GPU_ROWS:
            row = gpu[name]
            with_unit = [
                f"{row[column]} {row['unit']}" if row[column] != "–" else "–"
                for column in ("octants", "quadrants", "torch")
            ]
            lines.append("| " + " | ".join([name, *with_unit]) + " |")
    return "\n".join(lines)


def fill(table: Path, document: Path, mark: str) -> None:
    put(table.read_text(encoding="utf-8").strip(), document, mark)


def put(body: str, document: Path, mark: str) -> None:
    marks = re.compile(rf"(<!-- {mark}:.*?-->\n).*?(<!-- end of {mark} -->)", re.DOTALL)
    text, count = marks.subn(lambda found: f"{found[1]}{body}\n{found[2]}", document.read_text(encoding="utf-8"))
    if count != 1:
        sys.exit(f"{document.relative_to(ROOT)} does not have the two marks of {mark}, once")
    document.write_text(text, encoding="utf-8")


def main() -> None:
    if not (RESULTS / "table.md").exists():
        sys.exit("benches/results/table.md does not exist; run the benchmarks first")
    fill(RESULTS / "table.md", ROOT / "docs" / "performance.md", "benchmarks")
    if (RESULTS / "gpu.md").exists():
        for document in (ROOT / "docs" / "performance.md", ROOT / "docs" / "guide" / "gpu.md"):
            fill(RESULTS / "gpu.md", document, "gpu benchmarks")
    put(ten_figures(), ROOT / "README.md", "ten figures")


if __name__ == "__main__":
    main()
