"""Copies between fields, arrays, numpy and torch: `python benches/copies.py [--peer FOLDER | --peer-python PYTHON] [--only WORD] [--rounds N] [--mib N]`.

Copies in every layout as rates of the bytes that arrive; looks at memory without a copy, small and large; launches with arrays of numpy and torch. The same text under
octants and, if a peer is named, quadrants: each in a process of its own, in turns, the best of several rounds. What arrives is compared with what was sent. `--peer` is a
folder that the wheel of quadrants was unpacked into, `--peer-python` an interpreter that can import it, `--octants` a folder with octants.

Needs numpy; torch where it is installed. Writes `benches/results/copies.md`, unless `--only` is given.
"""

import argparse
import json
import os
import sys
import time

from harness.asking import add_systems, ask_in_turns, keep


def places(qd, mib):
    """Of each layout: what makes it, and which axes of its shape and elements numpy sees."""
    n = 1 << 9
    rows = mib * (1 << 20) // 4 // n
    cells = mib * (1 << 20) // 4
    edge = round((cells // 4) ** 0.5)
    soa, f32, f64, u8 = qd.Layout.SOA, qd.f32, qd.f64, qd.u8

    def blocks():
        made = qd.field(f32)
        qd.root.dense(qd.ij, (rows // 16, n // 16)).dense(qd.ij, (16, 16)).place(made)
        return made

    def together():
        one, other = qd.field(f32), qd.field(f32)
        qd.root.dense(qd.ij, (rows // 2, n)).place(one, other)
        return one

    found = {
        "field": lambda: qd.field(f32, shape=(rows, n)),
        "field f64": lambda: qd.field(f64, shape=(rows // 2, n)),
        "field u8": lambda: qd.field(u8, shape=(4 * rows, n)),
        'field order="ji"': lambda: qd.field(f32, shape=(2 * edge, 2 * edge), order="ji"),
        'field u8 order="ji"': lambda: qd.field(u8, shape=(4 * edge, 4 * edge), order="ji"),
        'field f64 order="ji"': lambda: qd.field(f64, shape=(2 * edge, edge), order="ji"),
        'field order="kji"': lambda: qd.field(f32, shape=(256, 256, cells >> 16), order="kji"),
        'field order="ikj"': lambda: qd.field(f32, shape=(256, 256, cells >> 16), order="ikj"),
        "field offset": lambda: qd.field(f32, shape=(rows, n), offset=(-3, 5)),
        "field in blocks": blocks,
        "field beside another": together,
        "vectors": lambda: qd.Vector.field(3, f32, shape=cells // 3),
        "vectors SOA": lambda: qd.Vector.field(3, f32, shape=cells // 3, layout=soa),
        "vectors of 4 SOA": lambda: qd.Vector.field(4, f32, shape=cells // 4, layout=soa),
        "vectors f64 SOA": lambda: qd.Vector.field(3, f64, shape=cells // 6, layout=soa),
        'vectors order="ji"': lambda: qd.Vector.field(3, f32, shape=(edge, edge), order="ji"),
        'vectors SOA order="ji"': lambda: qd.Vector.field(3, f32, shape=(edge, edge), order="ji", layout=soa),
        "matrices": lambda: qd.Matrix.field(3, 3, f32, shape=cells // 9),
        "matrices SOA": lambda: qd.Matrix.field(3, 3, f32, shape=cells // 9, layout=soa),
        "matrices of 2 × 2 SOA": lambda: qd.Matrix.field(2, 2, f32, shape=cells // 4, layout=soa),
        "structs": lambda: qd.Struct.field({"a": f32, "v": qd.types.vector(3, f32)}, shape=cells // 4),
        "structs SOA": lambda: qd.Struct.field({"a": f32, "v": qd.types.vector(3, f32)}, shape=cells // 4, layout=soa),
        "ndarray": lambda: qd.ndarray(f32, shape=(rows, n)),
        "ndarray of vectors": lambda: qd.Vector.ndarray(3, f32, shape=cells // 3),
        "ndarray of matrices": lambda: qd.Matrix.ndarray(3, 3, f32, shape=cells // 9),
    }
    if qd.__name__ == "octants":
        found["ndarray layout=(1, 0)"] = lambda: qd.ndarray(f32, shape=(2 * edge, 2 * edge), layout=(1, 0))
    else:
        found["ndarray layout=(1, 0)"] = lambda: qd.tensor(
            f32, (2 * edge, 2 * edge), layout=(1, 0), backend=qd.Backend.NDARRAY
        )
    return found


def best_time(run, at_least: float = 0.06) -> float:
    """The least time of a call, of as many as take so long."""
    times, begin = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - begin < at_least:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def parts(value):
    """The arrays that a copy consists of: one, or one for each member."""
    return list(value.values()) if isinstance(value, dict) else [value]


def measure_copies(qd, name: str, mib: int, torch, np) -> dict:
    make = places(qd, mib)[name]
    x, y = make(), make()
    arrays = x.to_numpy()
    random = np.random.default_rng(1)
    for array in parts(arrays):
        array[...] = random.integers(0, 100, array.shape)
    size = sum(array.nbytes for array in parts(arrays))
    found = {}

    def told(key, run, check=None):
        try:
            run()
            if check is not None and not check():
                found[key] = {"error": "wrong"}
                return
            found[key] = {"seconds": best_time(run), "bytes": size}
        except Exception as error:
            found[key] = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:100]}

    def same(one, other):
        return all(np.array_equal(a, b) for a, b in zip(parts(one), parts(other), strict=True))

    def run_of(method, *args):
        def run():
            getattr(x, method)(*args)
            qd.sync()

        return run

    told("memcpy", lambda: [np.copyto(b, a) for a, b in zip(parts(arrays), copies, strict=True)]) if (
        copies := [np.empty_like(array) for array in parts(arrays)]
    ) else None
    told("from_numpy", run_of("from_numpy", arrays))
    kept: list = [None]

    def out():
        # As a program does that takes one array after the other: the last one is let go of first.
        kept[0] = None
        kept[0] = x.to_numpy()

    told("to_numpy", out, lambda: same(kept[0], arrays))
    kept[0] = None

    def copy():
        y.copy_from(x)
        qd.sync()

    told("copy_from", copy, lambda: same(y.to_numpy(), arrays))
    if torch is not None:
        tensors = (
            {k: torch.from_numpy(v) for k, v in arrays.items()}
            if isinstance(arrays, dict)
            else torch.from_numpy(arrays)
        )
        told("from_torch", run_of("from_torch", tensors))

        def out_torch():
            kept[0] = None
            kept[0] = x.to_torch()

        told("to_torch", out_torch)
    return found


def measure_looks(qd, torch, np) -> dict:
    """Microseconds that a look takes at a field or array, of few and of many bytes."""
    found = {}
    for bytes_, size in ((1 << 10, "1 KiB"), (1 << 26, "64 MiB")):
        rows = bytes_ // 4 // 64
        shown = {
            "field": qd.field(qd.f32, shape=(rows, 64)),
            "vectors": qd.Vector.field(4, qd.f32, shape=(rows // 4, 64)),
            "ndarray": qd.ndarray(qd.f32, shape=(rows, 64)),
            "ndarray of vectors": qd.Vector.ndarray(4, qd.f32, shape=(rows // 4, 64)),
        }
        looks = {"to_numpy(copy=False)": lambda x: x.to_numpy(copy=False), "np.asarray": lambda x: np.asarray(x)}
        if torch is not None:
            looks["to_torch(copy=False)"] = lambda x: x.to_torch(copy=False)
            looks["torch.from_dlpack"] = lambda x: torch.from_dlpack(x)
        for what, x in shown.items():
            for how, look in looks.items():
                key = f"{how} of {what}, {size}"
                try:
                    if np.asarray(look(x)).nbytes != bytes_:
                        raise ValueError("no look at all of it")
                    look(x)
                    found[key] = {"seconds": each_of_many(lambda look=look, x=x: look(x))}
                except Exception as error:
                    found[key] = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:100]}
    return found


def each_of_many(run, at_least: float = 0.02) -> float:
    """The least time of a call, among rounds of calls that take so long."""
    calls = 1
    while True:
        begin = time.perf_counter()
        for _ in range(calls):
            run()
        seconds = time.perf_counter() - begin
        if seconds > at_least / 8:
            break
        calls *= 4
    times = []
    for _ in range(7):
        begin = time.perf_counter()
        for _ in range(calls):
            run()
        times.append((time.perf_counter() - begin) / calls)
    return min(times)


def measure_launches(qd, torch, np) -> dict:
    """Seconds of a call with arrays of 16 elements of which the kernel writes the first one's first."""
    any1 = qd.types.ndarray(dtype=qd.f32, ndim=1)

    @qd.kernel
    def one(a: any1):
        a[0] = 1.0

    @qd.kernel
    def ten(a: any1, b: any1, c: any1, d: any1, e: any1, f: any1, g: any1, h: any1, i: any1, j: any1):
        a[0] = b[0] + c[0] + d[0] + e[0] + f[0] + g[0] + h[0] + i[0] + j[0]

    makers = {
        "ndarray": lambda: qd.ndarray(qd.f32, 16),
        "numpy": lambda: np.zeros(16, np.float32),
    }
    if torch is not None:
        makers["torch"] = lambda: torch.zeros(16)
        makers["torch, requires_grad=False parameters"] = lambda: torch.nn.Parameter(
            torch.zeros(16), requires_grad=False
        )
    found = {}
    for what, make in makers.items():
        arrays = [make() for _ in range(10)]
        for count, run in ((1, lambda arrays=arrays: one(arrays[0])), (10, lambda arrays=arrays: ten(*arrays))):
            key = f"{count} of {what}"
            try:
                for _ in range(20):
                    run()
                qd.sync()
                found[key] = {"seconds": each_of_many(run)}
                qd.sync()
            except Exception as error:
                found[key] = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:100]}
    return found


def measure(system: str, what: str, mib: int) -> dict:
    """In a process of its own."""
    import importlib

    import numpy as np

    try:
        import torch
    except ImportError:
        torch = None
    qd = importlib.import_module(system)
    qd.init(arch=qd.cpu, offline_cache=False, log_level="error")
    if what == "looks":
        return measure_looks(qd, torch, np)
    if what == "launches":
        return measure_launches(qd, torch, np)
    return measure_copies(qd, what, mib, torch, np)


def main() -> None:
    parser = argparse.ArgumentParser(description="Copies between fields, arrays, numpy and torch")
    add_systems(parser)
    parser.add_argument("--only", action="append")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mib", type=int, default=64, help="MiB of an array that is copied")
    parser.add_argument("--measure")
    given = parser.parse_args()
    if given.measure:
        print("\n" + json.dumps(measure(*json.loads(given.measure))))
        return
    found: dict[str, dict] = {}
    for what in ("looks", "launches", *LAYOUTS):
        if given.only and not any(word in what for word in given.only):
            continue

        def asked(system: str, what: str = what) -> list[str]:
            return ["--measure", json.dumps([system, what, given.mib])]

        found[what] = ask_in_turns(__file__, given, asked, ("seconds",))
        print(what, json.dumps(found[what]), file=sys.stderr, flush=True)
    text = told(found, given.mib)
    print(text)
    if not given.only:
        keep("copies", text)


LAYOUTS = (
    "field", "field f64", "field u8", 'field order="ji"', 'field u8 order="ji"', 'field f64 order="ji"', 'field order="kji"', 'field order="ikj"', "field offset",
    "field in blocks", "field beside another", "vectors", "vectors SOA", "vectors of 4 SOA", "vectors f64 SOA", 'vectors order="ji"', 'vectors SOA order="ji"',
    "matrices", "matrices SOA", "matrices of 2 × 2 SOA", "structs", "structs SOA", "ndarray", "ndarray layout=(1, 0)", "ndarray of vectors", "ndarray of matrices",
)  # fmt: skip
COPIES = ("memcpy", "from_numpy", "to_numpy", "copy_from", "from_torch", "to_torch")


def told(found: dict, mib: int) -> str:
    """The tables."""

    def rate(one) -> str:
        return f"{one['bytes'] / one['seconds'] / 1e9:.1f}" if one and "seconds" in one else "–" if not one else "fails"

    def micro(one) -> str:
        return f"{1e6 * one['seconds']:.2f}" if one and "seconds" in one else "–" if not one else "fails"

    lines = []
    copied = [layout for layout in LAYOUTS if layout in found]
    if copied:
        lines += [
            f"Copies of {mib} MiB, in GB/s of what arrives: octants / quadrants, on {os.cpu_count()} processors. `memcpy` is numpy's copy from one array to another that was written before.",
            "",
            f"| layout | {' | '.join(COPIES)} |",
            f"|---|{'---|' * len(COPIES)}",
        ]
        for layout in copied:
            ours, theirs = found[layout]["octants"], found[layout].get("quadrants", {})
            cells = [rate(ours.get("memcpy"))] + [
                f"{rate(ours.get(one))} / {rate(theirs.get(one))}" for one in COPIES[1:]
            ]
            lines.append(f"| {layout} | {' | '.join(cells)} |")
    for what, title in (("looks", "Looks without a copy, µs"), ("launches", "A launch with arrays of 16 elements, µs")):
        if what in found:
            lines += ["", f"| {title} | octants | quadrants |", "|---|---|---|"]
            theirs = found[what].get("quadrants", {})
            lines += [
                f"| {key} | {micro(one)} | {micro(theirs.get(key))} |" for key, one in found[what]["octants"].items()
            ]
    return "\n".join(lines).strip() + "\n"


if __name__ == "__main__":
    main()
