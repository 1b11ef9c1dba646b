"""What checks of random derivatives share: how many programs became what, and processes that check some of them each."""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import itertools
import os
import re
import subprocess
import sys
import time

#: Seconds that a batch may take.
BATCH_SECONDS = 1200

#: What may become of a program.
OUTCOMES = ("agrees", "kink", "refused", "disagrees")


class Totals:
    """How many programs became what, of those that were refused how many by which code, and which were not begun in time."""

    def __init__(self, counts: dict[str, int] | None = None, left: list[int] | None = None, codes: dict[str, int] | None = None):  # fmt: skip
        self.counts = dict.fromkeys(OUTCOMES, 0) | (counts or {})
        self.left = left or []
        self.codes = collections.Counter(codes or {})

    def __add__(self, other: Totals) -> Totals:
        counts = {word: self.counts[word] + other.counts[word] for word in OUTCOMES}
        return Totals(counts, self.left + other.left, self.codes + other.codes)

    def __str__(self) -> str:
        counts = ", ".join(f"{word} {count}" for word, count in self.counts.items())
        # Neighbours differ from their places by the same number.
        runs = [
            list(run) for _, run in itertools.groupby(self.left, lambda seed, at=itertools.count(): seed - next(at))
        ]
        left = ", ".join(f"{run[0]}..{run[-1] + 1}" for run in runs)
        codes = ", ".join(f"{code} {count}" for code, count in sorted(self.codes.items()))
        return f"{counts}; {f'codes {codes}; ' if codes else ''}not begun {len(self.left)}{f': {left}' if left else ''}"

    @staticmethod
    def read(text: str) -> Totals | None:
        """Of what a process printed."""
        lines = [line for line in text.splitlines() if re.match(r"seeds \d+ to \d+: agrees ", line)]
        if not lines:
            return None
        counts = {word: int(count) for word, count in re.findall(r"(\w+) (\d+)[,;]", lines[-1]) if word in OUTCOMES}
        codes = {word: int(count) for word, count in re.findall(r"(OC\d{4}|none) (\d+)[,;]", lines[-1])}
        runs = re.findall(r"(\d+)\.\.(\d+)", lines[-1])
        return Totals(counts, [seed for first, last in runs for seed in range(int(first), int(last))], codes)


def close(a: float, b: float, bound: float) -> bool:
    return abs(a - b) <= bound * (1 + max(abs(a), abs(b)))


def check_in_processes(script: str, given: argparse.Namespace, options: list[str], in_one_process: int) -> Totals:
    """Checks the seeds of a command line in processes of some programs each."""
    batch = max(10, min(in_one_process, (given.last - given.first) // (4 * given.jobs)))
    deadline = time.monotonic() + 60 * given.minutes
    # Each process has one core: threads of numpy's would stand in each other's way.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}

    def one(at: int) -> Totals:
        end = min(at + batch, given.last)
        minutes = (deadline - time.monotonic()) / 60
        if minutes <= 0:
            return Totals(left=list(range(at, end)))
        command = [sys.executable, script, str(at), str(end), "--batch", "--minutes", str(minutes), *options]
        try:
            done = subprocess.run(
                command, check=False, capture_output=True, text=True, timeout=BATCH_SECONDS, env=environment
            )
        except subprocess.TimeoutExpired as late:
            done = subprocess.CompletedProcess(
                command, -1, late.stdout.decode() if late.stdout else "", "no answer in time\n"
            )
        totals = Totals.read(done.stdout)
        if totals is None:
            print(f"{done.stdout}{done.stderr}seeds {at} to {end}: ended with {done.returncode}", flush=True)
            return Totals({"disagrees": end - at})
        print(done.stdout, end="", flush=True)
        return totals

    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        return sum(pool.map(one, range(given.first, given.last, batch)), Totals())
