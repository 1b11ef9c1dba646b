"""Draws the streams of a trace as a picture: `draw_timeline.py TRACE.json OUT.svg`.

TRACE.json comes from `oc.profiler.export_trace` or `octants trace`. Every stream is a row, every task a bar of its kernel's colour; copies
are grey. `--launches BEGIN:END` takes some launches alone, as a slice of Python's: `--launches=-2:` the last two. `--title` says what the
picture shows.
"""

from __future__ import annotations

import argparse
import json
from html import escape
from pathlib import Path

#: Of kernels, in the order that they appear. Dark enough for white text.
COLOURS = ("#3465a4", "#c4560c", "#3a7d2c", "#8a3f8f", "#a2393b", "#0f7f86", "#806600", "#5a5fb8")
COPY_COLOUR = "#8a8f94"

WIDTH, LEFT, RIGHT = 960, 130, 20
ROW, BAR = 34, 24
#: Pixels that a letter of a label takes.
LETTER = 6.2


def load(path: Path) -> list[dict]:
    """The tasks and copies of a trace, each with the name of its stream as `row`."""
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    tracks = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    order = {(e["pid"], e["tid"]): e["args"]["sort_index"] for e in events if e["name"] == "thread_sort_index"}
    spans = [e for e in events if e["ph"] == "X" and e["cat"] in ("task", "copy")]
    for span in spans:
        place = span["pid"], span["tid"]
        span["row"], span["order"] = tracks[place], (span["pid"], order[place])
    return spans


def of_launches(spans: list[dict], wanted: str) -> list[dict]:
    """Those of a slice of the launches, and the copies between them."""
    numbers = sorted({span["args"]["launch"] for span in spans if span["cat"] == "task"})
    first, _, last = wanted.partition(":")
    chosen = set(numbers[int(first) if first else None : int(last) if last else None])
    tasks = [span for span in spans if span["cat"] == "task" and span["args"]["launch"] in chosen]
    if not tasks:
        return []
    begin_time = min(span["ts"] for span in tasks)
    end_time = max(span["ts"] + span["dur"] for span in tasks)
    copies = [s for s in spans if s["cat"] == "copy" and s["ts"] >= begin_time and s["ts"] + s["dur"] <= end_time]
    return tasks + copies


def step(span: float) -> float:
    """A round distance of some eight marks on an axis of this length."""
    size = 1e-3
    while True:
        for digit in (1, 2, 5):
            if span / (digit * size) <= 9:
                return digit * size
        size *= 10


def readable(microseconds: float, unit: str) -> str:
    return f"{microseconds / {'µs': 1, 'ms': 1e3, 's': 1e6}[unit]:g}"


def label(span: dict, pixels: float) -> str:
    """What fits into a bar."""
    text = span["name"].replace("_range_for", "")
    room = int((pixels - 8) / LETTER)
    if room < 3:
        return ""
    return text if len(text) <= room else text[: room - 1] + "…"


def draw(spans: list[dict], title: str | None) -> str:
    rows = sorted({(span["order"], span["row"]) for span in spans})
    begin = min(span["ts"] for span in spans)
    length = max(max(span["ts"] + span["dur"] for span in spans) - begin, 1e-3)
    unit = "µs" if length < 2e3 else "ms" if length < 2e6 else "s"
    per_pixel = length / (WIDTH - LEFT - RIGHT)
    top = 46 if title else 16
    bottom = top + ROW * len(rows)
    height = bottom + 44
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="system-ui, sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    if title:
        out.append(f'<text x="{LEFT}" y="26" font-size="15" fill="#202428">{escape(title)}</text>')
    distance = step(length)
    for mark in range(int(length / distance) + 1):
        x = LEFT + mark * distance / per_pixel
        out.append(f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom + 5}" stroke="#e2e5e8"/>')
        text = readable(mark * distance, unit)
        out.append(f'<text x="{x:.1f}" y="{bottom + 20}" text-anchor="middle" fill="#50565c">{text}</text>')
    out.append(f'<text x="{LEFT - 12}" y="{bottom + 20}" text-anchor="end" fill="#50565c">{unit}</text>')
    at = {}
    for number, (order, name) in enumerate(rows):
        y = top + ROW * number
        at[order] = y + (ROW - BAR) / 2
        out.append(
            f'<text x="{LEFT - 12}" y="{y + ROW / 2 + 4}" text-anchor="end" fill="#202428">{escape(name)}</text>'
        )
        out.append(f'<line x1="{LEFT}" y1="{y + ROW}" x2="{WIDTH - RIGHT}" y2="{y + ROW}" stroke="#eef0f2"/>')
    names = list(
        dict.fromkeys(span["name"] for span in sorted(spans, key=lambda span: span["ts"]) if span["cat"] == "task")
    )
    colours = {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(names)}
    for span in spans:
        x, y = LEFT + (span["ts"] - begin) / per_pixel, at[span["order"]]
        width = max(span["dur"] / per_pixel, 0.75)
        colour = colours.get(span["name"], COPY_COLOUR) if span["cat"] == "task" else COPY_COLOUR
        told = f"{span['name']}: {span['dur']:.3f} µs"
        out.append(
            f'<rect x="{x:.2f}" y="{y:g}" width="{width:.2f}" height="{BAR}" rx="2" fill="{colour}"><title>{escape(told)}</title></rect>'
        )
        if text := label(span, width):
            out.append(f'<text x="{x + 5:.2f}" y="{y + BAR / 2 + 4:g}" fill="#ffffff">{escape(text)}</text>')
    out.append("</svg>")
    return "\n".join(out) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("trace", type=Path, metavar="TRACE.json")
    parser.add_argument("out", type=Path, metavar="OUT.svg")
    parser.add_argument("--launches", metavar="BEGIN:END", help="only these launches")
    parser.add_argument("--title", help="a line above the picture")
    chosen = parser.parse_args()
    spans = load(chosen.trace)
    if chosen.launches:
        spans = of_launches(spans, chosen.launches)
    if not spans:
        parser.error(f"{chosen.trace} has no task to draw")
    chosen.out.write_text(draw(spans, chosen.title), encoding="utf-8")


if __name__ == "__main__":
    main()
