"""Renders a result document: tables for the terminal and for Markdown.

Owns wording and number formats. Reads the document only, so that an old result file can be shown again.
"""

from __future__ import annotations

from typing import Any

from .figures import GROUPS

NAMES = {"c": "C"}
ORDER = ["octants", "quadrants", "taichi", "numba", "c"]


def quantity(value: float, unit: str) -> str:
    """Three significant digits with the unit that fits."""
    scales = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")]
    if unit == "s":
        scales = [(1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")]
    for scale, name in scales:
        if value >= scale * 0.9995:
            return f"{three_digits(value / scale)} {name}"
    return f"{three_digits(value / scales[-1][0])} {scales[-1][1]}"


def three_digits(value: float) -> str:
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def shown_systems(document: dict[str, Any]) -> list[str]:
    return [name for name in ORDER if name in document["systems"]]


def ratio(best: dict[str, float], of: str, to: str) -> float | None:
    """How many times better `of` is than `to`."""
    return best[to] / best[of] if of in best and to in best else None


def verdict(figure: dict[str, Any]) -> str:
    marks = {True: "yes", False: "no", None: "–"}
    return "; ".join(marks[entry["reached"]] for entry in figure["targets"])


def target_text(figure: dict[str, Any]) -> str:
    return "; ".join(entry["target"] for entry in figure["targets"])


def main_row(figure: dict[str, Any], names: list[str]) -> list[str]:
    best = figure["best"]
    cells = [figure["title"]]
    for name in names:
        if name in best:
            cells.append(quantity(best[name], figure["unit"]) + (" †" if name in figure["disturbed"] else ""))
        else:
            cells.append("FAILED" if name in figure.get("failures", {}) else "–")
    against = ratio(best, "octants", "quadrants")
    of_c = ratio(best, "octants", "c") if figure["group"] == "throughput" else None
    cells.append("–" if against is None else f"{three_digits(against)}×")
    cells.append("–" if of_c is None else f"{of_c:.2f}")
    return [*cells, target_text(figure) or "–", verdict(figure) or "–"]


def main_header(names: list[str]) -> list[str]:
    return ["figure", *(NAMES.get(name, name) for name in names), "vs quadrants", "of C", "target", "reached"]


def limit_rows(document: dict[str, Any], names: list[str]) -> list[list[str]]:
    """Every system's speed as a fraction of C's, and C's bandwidth."""
    rows = []
    for figure in document["figures"]:
        best = figure["best"]
        if figure["group"] != "throughput" or "c" not in best:
            continue
        fractions = [ratio(best, name, "c") for name in names if name != "c"]
        moved = figure.get("bytes_moved")
        bandwidth = f"{moved / best['c'] / 1e9:.1f} GB/s" if moved else "–"
        rows.append([figure["title"], *("–" if f is None else f"{f:.2f}" for f in fractions), bandwidth])
    return rows


def limit_header(names: list[str]) -> list[str]:
    return ["speed as a fraction of C", *(name for name in names if name != "c"), "C moves"]


def terminal(document: dict[str, Any]) -> str:
    names = shown_systems(document)
    lines: list[str] = []
    header = main_header(names)
    rows: list[list[str] | str] = []
    for group, title in GROUPS.items():
        members = [figure for figure in document["figures"] if figure["group"] == group]
        if members:
            rows += [title, *(main_row(figure, names) for figure in members)]
    lines += aligned([header, *rows])
    limits = limit_rows(document, names)
    if limits:
        lines += ["", *aligned([limit_header(names), *limits])]
    lines += ["", described(document)]
    for figure in document["figures"]:
        lines += [f"{figure['name']}: {name} FAILED: {why}" for name, why in figure.get("failures", {}).items()]
    lines += [f"{name} not measured: {why}" for name, why in document["missing"].items()]
    return "\n".join(lines)


def aligned(rows: list[list[str] | str]) -> list[str]:
    """Columns padded to their widest cell; a row that is one string is a heading."""
    cells = [row for row in rows if not isinstance(row, str)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    lines = []
    for row in rows:
        if isinstance(row, str):
            lines += ["", row]
            continue
        first, rest = row[0].ljust(widths[0]), [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        lines.append("  ".join(["  " + first, *rest]).rstrip())
    return lines


def described(document: dict[str, Any]) -> str:
    host, load = document["machine"], document["load_average"]
    caches = ", ".join(f"{level} {size}" for level, size in host["caches"].items())
    versions = ", ".join(
        text if text.startswith("gcc") else f"{name} {text}" for name, text in document["systems"].items()
    )
    text = (
        f"{host['cpu']}, {host['cores']} cores ({caches}), {host['memory_GiB']} GiB, {host['system']}, "
        f"Python {host['python']}; {versions}. "
        f"Best of {document['rounds']} interleaved rounds, {document['size']} sizes; "
        f"load average {load['before']} before, {load['after']} after."
    )
    if any(figure["disturbed"] for figure in document["figures"]):
        text += " † Other work kept the machine busy in every turn of this system."
    return text


def markdown(document: dict[str, Any]) -> str:
    names = shown_systems(document)
    header = main_header(names)
    rows = [main_row(figure, names) for group in GROUPS for figure in document["figures"] if figure["group"] == group]
    blocks = [markdown_table(header, rows)]
    limits = limit_rows(document, names)
    if limits:
        blocks.append(markdown_table(limit_header(names), limits))
    blocks.append(described(document))
    blocks += [f"{name} not measured: {why}" for name, why in document["missing"].items()]
    return "\n\n".join(blocks) + "\n"


def markdown_table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---", *("---:" for _ in header[1:])], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
