"""Random programs whose derivatives are known three times: reverse mode, forward mode and differences, of compiled code.

    python tests/gradient_generator.py SEED                           prints a program and checks it
    python tests/gradient_generator.py FIRST LAST --jobs 2            checks the seeds of a range, in several processes
    python tests/gradient_generator.py FIRST LAST --device cpu,cuda   on other devices; each gives the gradients that the first one gives

The loss of a program is a weighted sum of what its kernel writes. Along a random direction, the gradient of a tape must be what forward mode gives, to
1e-9, and the quotient of differences in f64, to 1e-5. Where quotients of two steps differ from each other, a branch or a loop's end changes in between:
such a point is a kink, and the two modes are compared alone. A program that has no derivative is refused, with a code of its own.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import re
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from devices import missing
from generator import load
from gradient_programs import COUNTS, WEIGHTS, GradientProgram

#: Programs that one process checks.
IN_ONE_PROCESS = 40

#: Seconds that a batch may take.
BATCH_SECONDS = 1200

#: Codes of programs that have no derivative.
REFUSALS = ("OC1101", "OC1102", "OC1103", "OC1104", "OC1105")


class Point:
    """A program's arrays on the device of the session, with the numbers of its seed."""

    def __init__(self, program: GradientProgram, names: dict):
        import octants as oc

        self.program, self.names = program, names
        numbers = np.random.default_rng(program.seed)
        self.inputs = {"x": numbers.uniform(-1.1, 1.1, program.size), "w": numbers.uniform(-1.1, 1.1, WEIGHTS)}
        self.weights = numbers.uniform(-1, 1, program.size)
        self.directions = [
            {name: numbers.uniform(-1, 1, len(held)) for name, held in self.inputs.items()} for _ in range(2)
        ]
        rows = np.concatenate([[0], np.cumsum(numbers.integers(-1, 4, program.size))])
        integers = {"n": numbers.integers(0, 5, COUNTS), "row": rows, "link": numbers.integers(0, COUNTS, COUNTS)}
        self.p = int(numbers.integers(0, 5))
        dense = oc.field if program.fields else oc.ndarray
        self.arrays = {
            name: dense(oc.f64, shape, needs_grad=True, needs_dual=True) for name, shape in program.reals.items()
        }
        for name, values in integers.items():
            self.arrays[name] = dense(oc.i32, values.shape)
            self.arrays[name].from_numpy(values.astype(np.int32))
        self.c = oc.ndarray(oc.f64, program.size)
        self.c.from_numpy(self.weights)
        self.loss = oc.ndarray(oc.f64, 1, needs_grad=True, needs_dual=True)

    def reset(self, inputs: dict | None = None) -> None:
        """All arrays as they are before the program runs."""
        for name in ("y", "z", "total"):
            self.arrays[name].fill(0.25)
        for name, values in (inputs or self.inputs).items():
            self.arrays[name].from_numpy(values)
        self.loss.fill(0)

    def run(self) -> None:
        given = [self.arrays.get(name, self.p) for name in self.program.params]
        self.names["program"](*given)
        self.names["measure"](self.arrays["y"], self.arrays["z"], self.arrays["total"], self.c, self.loss)

    def value(self, inputs: dict) -> float:
        self.reset(inputs)
        self.run()
        return float(self.loss[0])

    def gradient(self) -> dict:
        """By reverse mode."""
        import octants as oc

        self.reset()
        with oc.ad.Tape(self.loss):
            self.run()
        return {name: self.arrays[name].grad.to_numpy() for name in self.inputs}

    def tangent(self, direction: dict) -> float:
        """The derivative along a direction, by forward mode."""
        import octants as oc

        found = 0.0
        for name in self.inputs:
            self.reset()
            with oc.ad.FwdMode(loss=self.loss, param=self.arrays[name], seed=direction[name]):
                self.run()
            found += float(self.loss.dual[0])
        return found

    def quotient(self, direction: dict, step: float) -> float:
        """The derivative along a direction, by differences."""
        ahead, behind = (
            self.value({name: held + sign * step * direction[name] for name, held in self.inputs.items()})
            for sign in (1, -1)
        )
        return (ahead - behind) / (2 * step)


def close(a: float, b: float, bound: float) -> bool:
    return abs(a - b) <= bound * (1 + max(abs(a), abs(b)))


def compare(point: Point, gradient: dict) -> str | None:
    """What does not agree at a point."""
    for direction in point.directions:
        back = sum(float(gradient[name] @ direction[name]) for name in gradient)
        along = point.tangent(direction)
        if not close(along, back, 1e-9):
            return f"forward mode gives {along!r}, reverse mode {back!r}"
        quotients = [point.quotient(direction, step) for step in (1e-6, 2e-7, 5e-6)]
        if not any(close(back, quotient, 1e-5) for quotient in quotients) and all(
            close(quotients[0], quotient, 1e-4) for quotient in quotients
        ):
            return f"differences give {quotients}, reverse mode {back!r}"
    return None


def check(seed: int, folder: Path, devices: list[str]) -> str:
    """Raises if derivatives do not agree. Gives "agrees", or "refused" if there are none."""
    import octants as oc

    program = GradientProgram(seed)
    names = load(program.text, folder, f"gradient_{seed}")
    expected = None
    for device in devices:
        options = {"default_fp": oc.f64, "fast_math": False, "log_level": "error", "enable_fallback": False}
        if seed % 7 == 0:
            # Iterations in batches; enough for each.
            options["tape_memory_limit"] = 1 << 16
        oc.init(arch=getattr(oc, device), **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            point = Point(program, names)
            try:
                gradient = point.gradient()
            except oc.OctantsCompilationError as error:
                if not any(code in str(error) for code in REFUSALS):
                    raise
                if expected is not None:
                    raise AssertionError(f"seed {seed}: {device} refuses what {devices[0]} derives\n{error}") from error
                return "refused"
            if difference := compare(point, gradient):
                raise AssertionError(f"seed {seed} on {device}: {difference}\n{program.text}")
        expected = expected or gradient
        for name, found in gradient.items():
            if not np.allclose(found, expected[name], rtol=1e-9, atol=1e-9):
                raise AssertionError(
                    f"seed {seed}: the gradient of {name} is\n{found} on {device},\n{expected[name]} on {devices[0]}\n{program.text}"
                )
    return "agrees"


def check_range(first: int, last: int, devices: list[str]) -> bool:
    """Checks seeds in this process and prints what does not agree."""
    counts = {"agrees": 0, "refused": 0, "fails": 0}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, last):
            try:
                counts[check(seed, Path(folder), devices)] += 1
            except Exception as error:  # noqa: BLE001
                counts["fails"] += 1
                print(f"---- seed {seed}: {type(error).__name__}: {error}\n", flush=True)
    agree, refused, failed = counts.values()
    print(f"seeds {first} to {last}: {agree} agree, {failed} do not, {refused} are refused", flush=True)
    return not failed


def check_in_processes(given: argparse.Namespace) -> bool:
    """Checks seeds in processes of some programs each."""
    batch = max(10, min(IN_ONE_PROCESS, (given.last - given.first) // (4 * given.jobs)))
    deadline = time.monotonic() + 60 * given.minutes

    def one(at: int) -> tuple[int, int, int]:
        end = min(at + batch, given.last)
        if time.monotonic() > deadline:
            return 0, 0, 0
        command = [sys.executable, __file__, str(at), str(end), "--batch", "--device", given.device]
        try:
            done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=BATCH_SECONDS)
        except subprocess.TimeoutExpired as late:
            done = subprocess.CompletedProcess(
                command, -1, late.stdout.decode() if late.stdout else "", "no answer in time\n"
            )
        counts = re.findall(r"(\d+) agree, (\d+) do not, (\d+) are", done.stdout)
        print(
            done.stdout if counts else f"{done.stdout}{done.stderr}seeds {at} to {end}: ended with {done.returncode}",
            flush=True,
        )
        if not counts:
            return 0, end - at, 0
        agree, failed, refused = map(int, counts[0])
        return agree, failed, refused

    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        counts = list(pool.map(one, range(given.first, given.last, batch)))
    agree, failed, refused = (sum(found) for found in zip(*counts, strict=True))
    left = given.last - given.first - agree - failed - refused
    total = f"in all, seeds {given.first} to {given.last} on {given.device}: {agree} agree, {failed} do not, {refused} are refused"
    print(f"{total} ({time.monotonic() - begin:.0f} s{f', {left} not begun in time' if left else ''})")
    return not failed


def main() -> None:
    parser = argparse.ArgumentParser(description="Checks derivatives of random programs.")
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int, nargs="?")
    parser.add_argument(
        "--device", metavar="A,B", default="cpu", help="where they run; the gradients of all are compared"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no batch after that time")
    parser.add_argument("--batch", action="store_true", help="check all seeds in this process")
    given = parser.parse_args()
    devices = given.device.split(",")
    if reasons := [reason for device in devices if (reason := missing(device))]:
        sys.exit("; ".join(reasons))
    if given.last is None:
        print(GradientProgram(given.first).text)
        good = check_range(given.first, given.first + 1, devices)
    elif given.batch or (given.last - given.first <= IN_ONE_PROCESS and given.jobs == 1):
        good = check_range(given.first, given.last, devices)
    else:
        good = check_in_processes(given)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
