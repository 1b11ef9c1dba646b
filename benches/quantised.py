"""What quantised fields cost and save: `python benches/quantised.py [--device cuda] [--peer FOLDER | --peer-python PYTHON] [--only NAME] [--threads N]`.

The same text under octants and, if a peer is named, quadrants: each in a process of its own, in turns, the best of several rounds. Each program
runs on plain fields and on quantised ones; what they compute is compared between systems before anything is told. `--peer` is a folder that the wheel
of quadrants was unpacked into, `--peer-python` an interpreter that can import it, `--octants` a folder with octants.

Needs numpy. Writes `benches/results/quantised_DEVICE.json` and `.md`.
"""

import argparse
import json
import time

from harness.asking import RESULTS, Failed, add_systems, ask, chosen_systems, keep

#: Programs: what they are, and bytes of an element on plain fields and on quantised ones.
PROGRAMS = {
    "particles": ("position of 3 × 21 bits, velocity of 3 × 9 bits and an exponent; 2²⁰ bounce in a box", 24, 12),
    "reaction": ("two substances of 16 bits in a word, Gray–Scott, 1024 × 1024", 16, 8),
    "sum": ("four channels of 8 bits, weighted and added up, 2²² elements", 16, 4),
    "life": ("a bit for each cell, 2048 × 2048, `quant_array`", 8, 0.25),
    "counts": ("2²² atomic additions to 3 counters of 21 bits in 2¹² words", 12, 8),
}


def programs(qd, np):
    """Of each program: a function of whether it is quantised, which gives what runs it and what its result is."""
    quant = qd.types.quant
    f32 = qd.f32

    def place(fields, shape, bits, shared=False):
        word = qd.BitpackedFields(max_num_bits=bits)
        word.place(*fields, shared_exponent=shared)
        qd.root.dense(qd.i if len(shape) == 1 else qd.ij, shape).place(word)

    def particles(packed):
        # Powers of two: whether a product is rounded before it is added makes no difference.
        n = 1 << 20
        if packed:
            x = [qd.field(quant.fixed(21, max_value=2.0)) for _ in range(3)]
            v = [qd.field(quant.float(5, 9)) for _ in range(3)]
            place(x, (n,), 64)
            place(v, (n,), 32, shared=True)
        else:
            x, v = ([qd.field(f32, shape=n) for _ in range(3)] for _ in range(2))
        x0, x1, x2 = x
        v0, v1, v2 = v

        @qd.kernel
        def begin():
            for i in range(n):
                x0[i] = 0.0001220703125 * (i % 10007) - 0.5
                x1[i] = 0.0001220703125 * (i % 9973) - 0.5
                x2[i] = 0.0001220703125 * (i % 9871) - 0.5
                v0[i] = 0.0078125 * (i % 101) - 0.5
                v1[i] = 0.0078125 * (i % 97) - 0.5
                v2[i] = 0.0078125 * (i % 89) - 0.5

        @qd.kernel
        def step():
            for i in range(n):
                a, b, c = x0[i], x1[i], x2[i]
                p, q, r = v0[i], v1[i], v2[i]
                q -= 0.0078125
                a += 0.0078125 * p
                b += 0.0078125 * q
                c += 0.0078125 * r
                if a < -1.0 or a > 1.0:
                    p = -p
                if b < -1.0 or b > 1.0:
                    q = -q
                if c < -1.0 or c > 1.0:
                    r = -r
                x0[i] = a
                x1[i] = b
                x2[i] = c
                v0[i] = p
                v1[i] = q
                v2[i] = r

        @qd.kernel
        def total() -> qd.f64:
            s = qd.cast(0.0, qd.f64)
            for i in range(n):
                s += qd.cast(x0[i] + 2.0 * x1[i] - x2[i], qd.f64)
            return s

        begin()
        return step, total

    def reaction(packed):
        n = 1024
        if packed:
            u, v, uu, vv = (qd.field(quant.fixed(16, signed=False, max_value=2.0)) for _ in range(4))
            place([u, v], (n, n), 32)
            place([uu, vv], (n, n), 32)
        else:
            u, v, uu, vv = (qd.field(f32, shape=(n, n)) for _ in range(4))

        @qd.kernel
        def begin():
            for i, j in qd.ndrange(n, n):
                spot = ((i // 16) * 7 + (j // 16) * 13) % 11 == 0
                u[i, j] = 0.5 if spot else 1.0
                v[i, j] = 0.25 if spot else 0.0
                uu[i, j] = 1.0
                vv[i, j] = 0.0

        @qd.func
        def react(a: qd.template(), b: qd.template(), c: qd.template(), d: qd.template(), i, j):
            x, y = a[i, j], b[i, j]
            lx = a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1] - 4.0 * x
            ly = b[i - 1, j] + b[i + 1, j] + b[i, j - 1] + b[i, j + 1] - 4.0 * y
            rate = x * y * y
            c[i, j] = x + 0.2 * lx - rate + 0.035 * (1.0 - x)
            d[i, j] = y + 0.1 * ly + rate - 0.1 * y

        @qd.kernel
        def step():
            for i, j in qd.ndrange((1, n - 1), (1, n - 1)):
                react(u, v, uu, vv, i, j)
            for i, j in qd.ndrange((1, n - 1), (1, n - 1)):
                react(uu, vv, u, v, i, j)

        @qd.kernel
        def total() -> qd.f64:
            s = qd.cast(0.0, qd.f64)
            for i, j in qd.ndrange(n, n):
                s += qd.cast(u[i, j] + v[i, j], qd.f64)
            return s

        begin()
        return step, total

    def channels(packed):
        n = 1 << 22
        if packed:
            fields = [qd.field(quant.int(8, signed=False)) for _ in range(4)]
            place(fields, (n,), 32)
        else:
            fields = [qd.field(qd.u32, shape=n) for _ in range(4)]
        a, b, c, d = fields

        @qd.kernel
        def begin():
            for i in range(n):
                a[i] = i % 251
                b[i] = i % 241
                c[i] = i % 239
                d[i] = i % 233

        @qd.kernel
        def total() -> qd.i64:
            s = qd.cast(0, qd.i64)
            for i in range(n):
                s += qd.cast(a[i] * 3 + b[i] * 5 + c[i] * 7 + d[i], qd.i64)
            return s

        begin()
        return total, total

    def life(packed):
        n = 2048
        if packed:
            x, y = (qd.field(quant.int(1, signed=False)) for _ in range(2))
            for field in (x, y):
                qd.root.dense(qd.ij, (n, n // 32)).quant_array(qd.ij, (1, 32), max_num_bits=32).place(field)
        else:
            x, y = (qd.field(qd.u32, shape=(n, n)) for _ in range(2))

        @qd.kernel
        def begin():
            for i, j in qd.ndrange(n, n):
                x[i, j] = qd.cast((i * 7919 + j * 104729) % 13 < 5, qd.u32)
                y[i, j] = qd.cast(0, qd.u32)

        @qd.func
        def rule(a: qd.template(), b: qd.template(), i, j):
            count = a[i - 1, j - 1] + a[i - 1, j] + a[i - 1, j + 1] + a[i, j - 1]
            count += a[i, j + 1] + a[i + 1, j - 1] + a[i + 1, j] + a[i + 1, j + 1]
            b[i, j] = qd.cast(count == 3 or (count == 2 and a[i, j] == 1), qd.u32)

        @qd.kernel
        def step():
            for i, j in qd.ndrange((1, n - 1), (1, n - 1)):
                rule(x, y, i, j)
            for i, j in qd.ndrange((1, n - 1), (1, n - 1)):
                rule(y, x, i, j)

        @qd.kernel
        def total() -> qd.i64:
            s = qd.cast(0, qd.i64)
            for i, j in qd.ndrange(n, n):
                s += qd.cast(x[i, j], qd.i64) * (i % 7 + j % 3 + 1)
            return s

        begin()
        return step, total

    def counts(packed):
        n, m = 1 << 22, 1 << 12
        if packed:
            fields = [qd.field(quant.int(21, signed=False)) for _ in range(3)]
            place(fields, (m,), 64)
        else:
            fields = [qd.field(qd.u32, shape=m) for _ in range(3)]
        a, b, c = fields

        @qd.kernel
        def step():
            for i in range(n):
                at = ((i * 40503) >> 3) & (m - 1)
                if i % 3 == 0:
                    a[at] += 1
                elif i % 3 == 1:
                    b[at] += 1
                else:
                    c[at] += 1

        @qd.kernel
        def total() -> qd.i64:
            s = qd.cast(0, qd.i64)
            for i in range(m):
                s += qd.cast(a[i] % 1024 + b[i] % 1024 + c[i] % 1024, qd.i64) * (i % 5 + 1)
            return s

        return step, total

    return {"particles": particles, "reaction": reaction, "sum": channels, "life": life, "counts": counts}


def measure(system: str, device: str, name: str, packed: bool, threads: int | None) -> dict:
    """In a process of its own: the best time of a call, and the result after three calls."""
    import importlib

    import numpy as np

    qd = importlib.import_module(system)
    options = {"cpu_max_num_threads": threads} if threads else {}
    qd.init(arch=getattr(qd, device), offline_cache=False, **options)
    run, result = programs(qd, np)[name](packed)
    for _ in range(3):
        run()
    found = float(result())
    qd.sync()

    def seconds(calls):
        begin = time.perf_counter()
        for _ in range(calls):
            run()
        qd.sync()
        return (time.perf_counter() - begin) / calls

    # Launches are queued: as many as take about this long.
    calls = max(1, int(0.08 / seconds(3)))
    times = [seconds(calls) for _ in range(7)]
    return {"seconds": min(times), "result": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--device", default="cpu")
    add_systems(parser)
    parser.add_argument("--only", action="append")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--measure")
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(*json.loads(given.measure))))
        return
    systems = chosen_systems(given)
    # What is not measured now stays as it was.
    kept = RESULTS / f"quantised_{given.device}.json"
    results = json.loads(kept.read_text()) if given.only and kept.exists() else {}
    for name in PROGRAMS:
        if given.only and not any(word in name for word in given.only):
            continue
        found = {}
        for _ in range(given.rounds):
            for packed in (False, True):
                for system, (python, folder) in systems.items():
                    asked = json.dumps([system, given.device, name, packed, given.threads])
                    try:
                        one = ask(__file__, python, folder, ["--measure", asked])
                    except Failed as failed:
                        one = {"error": str(failed).splitlines()[-1][:200]}
                    key = f"{system} {'quantised' if packed else 'plain'}"
                    known = found.setdefault(key, one)
                    if "seconds" in one and one["seconds"] < known.get("seconds", float("inf")):
                        found[key] = one
        results[name] = found
        print(name, json.dumps(found), flush=True)
        write({name: results[name] for name in PROGRAMS if name in results}, given)


def write(results: dict, given: argparse.Namespace) -> None:
    def cell(one) -> str:
        return f"{1e3 * one['seconds']:.2f}" if one and "seconds" in one else "fails" if one else "–"

    lines = [
        "| program | bytes, plain → quantised | octants plain, ms | octants quantised | quadrants plain | quadrants quantised | same result |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, found in results.items():
        about, plain, packed = PROGRAMS[name]
        columns = [found.get(f"{s} {k}") for s in ("octants", "quadrants") for k in ("plain", "quantised")]
        pair = [one["result"] for one in (columns[1], columns[3]) if one and "result" in one]
        same = "–" if len(pair) < 2 else "yes" if abs(pair[0] - pair[1]) <= 1e-6 * abs(pair[0]) else "no"
        lines.append(f"| {name}: {about} | {plain:g} → {packed:g} | {' | '.join(map(cell, columns))} | {same} |")
    keep(f"quantised_{given.device}", "\n".join(lines) + "\n", results)


if __name__ == "__main__":
    main()
