"""Plots as SVG, with the standard library and numpy alone: curves over a linear or logarithmic axis, points, and paths."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

PANEL, MARGIN, GAP = (360, 270), (64, 56), 40
COLOURS = ("#d1495b", "#00798c", "#edae49", "#66a182", "#2e4057", "#8d96a3")


class Plot:
    """One panel: what is drawn in it, in its own coordinates."""

    def __init__(self, title: str, across: str = "", up: str = "", logarithmic: bool = False, equal: bool = False):
        self.title, self.across, self.up, self.logarithmic, self.equal = title, across, up, logarithmic, equal
        self.drawn: list[tuple] = []

    def curve(self, y, x=None, label: str = "", dashed: bool = False) -> Plot:
        """A line through points; counts them if nothing is said of `x`."""
        y = np.asarray(y, dtype=float)
        self.drawn.append(("curve", np.arange(len(y)) if x is None else np.asarray(x, dtype=float), y, label, dashed))
        return self

    def points(self, x, y, label: str = "", radius: float = 3.0) -> Plot:
        """A disc at each point."""
        self.drawn.append(("points", np.asarray(x, dtype=float), np.asarray(y, dtype=float), label, radius))
        return self

    def _limits(self):
        x, y = (np.concatenate([one[axis].reshape(-1) for one in self.drawn]) for axis in (1, 2))
        if self.logarithmic:
            y = np.log10(np.maximum(y, 1e-300))
        low, high = np.array([x.min(), y.min()]), np.array([x.max(), y.max()])
        span = np.maximum(high - low, 1e-12)
        if self.equal:
            scale = max(span / PANEL)
            low, high = (low + high) / 2 - scale * np.array(PANEL) / 2, (low + high) / 2 + scale * np.array(PANEL) / 2
            span = high - low
        return low - 0.05 * span, high + 0.05 * span

    def _svg(self, left: float) -> list[str]:
        low, high = self._limits()
        top = MARGIN[1]

        def place(x, y):
            if self.logarithmic:
                y = np.log10(np.maximum(y, 1e-300))
            across = left + (np.asarray(x) - low[0]) / (high[0] - low[0]) * PANEL[0]
            return across, top + (high[1] - np.asarray(y)) / (high[1] - low[1]) * PANEL[1]

        text = [f'<rect x="{left}" y="{top}" width="{PANEL[0]}" height="{PANEL[1]}" fill="#fff" stroke="#999"/>']
        text.append(
            f'<text x="{left + PANEL[0] / 2}" y="{top - 30}" font-size="15" text-anchor="middle">{self.title}</text>'
        )
        text.append(
            f'<text x="{left + PANEL[0] / 2}" y="{top + PANEL[1] + 36}" text-anchor="middle">{self.across}</text>'
        )
        middle = top + PANEL[1] / 2
        text.append(
            f'<text x="{left - 46}" y="{middle}" text-anchor="middle" transform="rotate(-90 {left - 46} {middle})">{self.up}</text>'
        )
        for value in _ticks(low[0], high[0]):
            at = left + (value - low[0]) / (high[0] - low[0]) * PANEL[0]
            text.append(f'<text x="{at:.1f}" y="{top + PANEL[1] + 18}" text-anchor="middle">{value:g}</text>')
        for value in _ticks(low[1], high[1], whole=self.logarithmic):
            at = top + (high[1] - value) / (high[1] - low[1]) * PANEL[1]
            name = f"1e{value:g}" if self.logarithmic else f"{value:g}"
            text.append(f'<line x1="{left}" x2="{left + PANEL[0]}" y1="{at:.1f}" y2="{at:.1f}" stroke="#e4e4e4"/>')
            text.append(f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{name}</text>')
        labels = []
        for number, (kind, x, y, label, extra) in enumerate(self.drawn):
            colour = COLOURS[number % len(COLOURS)]
            xs, ys = place(x, y)
            if kind == "curve":
                path = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(xs, ys, strict=True))
                dash = ' stroke-dasharray="5 4"' if extra else ""
                text.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
            else:
                text += [
                    f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{extra}" fill="{colour}"/>'
                    for a, b in zip(xs, ys, strict=True)
                ]
            if label:
                labels.append(f'<tspan fill="{colour}">{label}</tspan>')
        told = "&#160; · &#160;".join(labels)
        text.append(f'<text x="{left + PANEL[0] / 2}" y="{top - 10}" text-anchor="middle">{told}</text>')
        return text


def _ticks(low: float, high: float, whole: bool = False) -> list[float]:
    """About five round numbers between two."""
    step = 10.0 ** math.floor(math.log10((high - low) / 5))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= 6)
    step = max(step, 1.0) if whole else step
    return [step * number for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def save(path: Path, *panels: Plot) -> None:
    """Writes panels side by side."""
    width = MARGIN[0] + len(panels) * (PANEL[0] + GAP + MARGIN[0]) - MARGIN[0]
    height = PANEL[1] + 2 * MARGIN[1] - 8
    text = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">'
    ]
    text.append(f'<rect width="{width}" height="{height}" fill="#fafafa"/>')
    for number, panel in enumerate(panels):
        text += panel._svg(MARGIN[0] + number * (PANEL[0] + GAP + MARGIN[0]))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*text, "</svg>"]) + "\n", encoding="utf-8")
