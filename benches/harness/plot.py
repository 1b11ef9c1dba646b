"""Draws a result document: how much better than quadrants at starting, compiling and launching; how near to C.

Owns colours and layout. Runs in the driver's environment, which has matplotlib.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

COLOURS = {"octants": "#d1495b", "quadrants": "#30638e", "taichi": "#8fb8d0", "numba": "#edae49", "c": "#5c6b73"}
LATENCY = ("start", "compile", "launch")


def draw(document: dict[str, Any], path: Path) -> bool:
    """Writes the picture; says whether there was anything to draw."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    # The same document gives the same bytes.
    matplotlib.rcParams |= {
        "svg.hashsalt": "octants",
        "svg.fonttype": "none",
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    latency = [f for f in document["figures"] if f["group"] in LATENCY and "quadrants" in f["best"]]
    throughput = [f for f in document["figures"] if f["group"] == "throughput" and "c" in f["best"]]
    panels = [
        (rows, base, label)
        for rows, base, label in (
            (latency, "quadrants", "times better than quadrants (log scale)"),
            (throughput, "c", "fraction of the speed of C"),
        )
        if rows
    ]
    if not panels:
        return False
    heights = [len(rows) for rows, _, _ in panels]
    figure, axes = plt.subplots(
        len(panels), 1, figsize=(8, 0.62 * sum(heights) + 1.6), height_ratios=heights, squeeze=False
    )
    for axis, (rows, base, label) in zip(axes[:, 0], panels):
        bars(axis, document, rows, base)
        axis.set_xlabel(label)
        if base == "quadrants":
            axis.set_xscale("log")
            axis.xaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g×"))
    handles, labels = axes[0, 0].get_legend_handles_labels()
    for extra in axes[1:, 0]:
        for handle, text in zip(*extra.get_legend_handles_labels()):
            if text not in labels:
                handles.append(handle)
                labels.append(text)
    figure.legend(handles, labels, loc="upper center", ncols=len(labels), frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.45 / figure.get_figheight()))
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    return True


def bars(axis: Any, document: dict[str, Any], rows: list[dict[str, Any]], base: str) -> None:
    """One group of bars per figure, the systems from top to bottom; a line marks the base's own value."""
    names = [name for name in COLOURS if name in document["systems"] and name != base]
    names = [name for name in names if base == "c" or name != "c"]
    thickness = 0.8 / max(len(names), 1)
    for place, name in enumerate(names):
        points = [(i, row["best"][base] / row["best"][name]) for i, row in enumerate(rows) if name in row["best"]]
        if not points:
            continue
        offsets = [i + (place - (len(names) - 1) / 2) * thickness for i, _ in points]
        drawn = axis.barh(offsets, [v for _, v in points], height=thickness * 0.92, color=COLOURS[name], label=name)
        axis.bar_label(drawn, [f"{v:.1f}" if v >= 9.95 else f"{v:.2f}" for _, v in points], padding=2, fontsize=7)
    axis.axvline(1, color="#444444", linewidth=0.8)
    axis.set_yticks(range(len(rows)), [row["title"] for row in rows])
    axis.invert_yaxis()
    axis.tick_params(axis="y", length=0)
