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

import octants as oc

#: Programs that one process checks: starting it, and opening the device, takes as long as some of them.
IN_ONE_PROCESS = 100

#: Seconds that a batch may take.
BATCH_SECONDS = 1200

#: Codes of programs that have no derivative.
REFUSALS = ("OC1101", "OC1102", "OC1103", "OC1104", "OC1105")


VEC, MAT = (oc.types.ndarray(dtype=oc.f64, ndim=ndim) for ndim in (1, 2))


@oc.kernel
def measure_arrays(y: VEC, z: MAT, total: VEC, c: VEC, loss: VEC):
    for i in range(y.shape[0]):
        loss[0] += c[i] * y[i] + 0.3 * c[i] * z[i, 0] - c[i] * z[i, 2]
    loss[0] += 0.7 * total[0]


@oc.kernel
def measure_fields(y: oc.template(), z: oc.template(), total: oc.template(), c: VEC, loss: VEC):
    for i in range(y.shape[0]):
        loss[0] += c[i] * y[i] + 0.3 * c[i] * z[i, 0] - c[i] * z[i, 2]
    loss[0] += 0.7 * total[0]


class Point:
    """A program's arrays on the device of the session, with the numbers of its seed."""

    def __init__(self, program: GradientProgram, kernel):
        self.program, self.kernel = program, kernel
        self.measure = measure_fields if program.fields else measure_arrays
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
        self.kernel(*given)
        self.measure(self.arrays["y"], self.arrays["z"], self.arrays["total"], self.c, self.loss)

    def value(self, inputs: dict) -> float:
        self.reset(inputs)
        self.run()
        return float(self.loss[0])

    def gradient(self) -> dict:
        """By reverse mode."""
        self.reset()
        with oc.ad.Tape(self.loss):
            self.run()
        return {name: self.arrays[name].grad.to_numpy() for name in self.inputs}

    def tangent(self, direction: dict) -> float:
        """The derivative along a direction, by forward mode."""
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


def is_limited(seed: int) -> bool:
    """Whether iterations of the program's derivative run in batches."""
    return seed % 7 == 0


def open_session(device: str, limited: bool) -> None:
    """A session for programs of one kind. The limit is enough for each iteration."""
    limit = {"tape_memory_limit": 1 << 16} if limited else {}
    options = {"default_fp": oc.f64, "fast_math": False, "log_level": "error", "enable_fallback": False}
    oc.init(arch=getattr(oc, device), offline_cache=False, **options, **limit)


def gradient_of(seed: int, folder: Path, device: str) -> dict | None:
    """What a program's gradients are in the session, which is one of the device; `None` if it is refused. Raises if derivatives do not agree."""
    program = GradientProgram(seed)
    names = load(program.text, folder, f"gradient_{seed}_{device}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        point = Point(program, names["program"])
        try:
            gradient = point.gradient()
        except oc.OctantsCompilationError as error:
            if not any(code in str(error) for code in REFUSALS):
                raise
            return None
        if difference := compare(point, gradient):
            raise AssertionError(f"seed {seed} on {device}: {difference}\n{program.text}")
    return gradient


def require_same(seed: int, device: str, found: dict | None, other: str, expected: dict | None) -> None:
    """Raises if two devices give other gradients."""
    if (found is None) != (expected is None):
        refuses, derives = (device, other) if found is None else (other, device)
        raise AssertionError(f"seed {seed}: {refuses} refuses what {derives} derives\n{GradientProgram(seed).text}")
    for name in found or ():
        if not np.allclose(found[name], expected[name], rtol=1e-9, atol=1e-9):
            raise AssertionError(
                f"seed {seed}: the gradient of {name} is\n{found[name]} on {device},\n{expected[name]} on {other}\n{GradientProgram(seed).text}"
            )


def check(seed: int, folder: Path, device: str) -> str:
    """Checks one program in a session of its own. Raises if derivatives do not agree. Gives "agrees", or "refused" if there are none."""
    open_session(device, is_limited(seed))
    return "refused" if gradient_of(seed, folder, device) is None else "agrees"


def check_range(first: int, last: int, devices: list[str], deadline: float = float("inf")) -> bool:
    """Checks seeds in this process and prints what does not agree. Begins no program after the deadline.

    Programs share sessions, two for each device: opening one, and compiling what measures them all, takes as long as a program."""
    seeds = sorted(range(first, last), key=is_limited)
    found: dict[str, dict[int, dict | None]] = {device: {} for device in devices}
    failed: set[int] = set()
    with tempfile.TemporaryDirectory() as folder:
        for device in devices:
            opened = None
            for seed in seeds:
                if time.monotonic() > deadline:
                    break
                if opened is not is_limited(seed):
                    opened = is_limited(seed)
                    open_session(device, opened)
                try:
                    found[device][seed] = gradient_of(seed, Path(folder), device)
                    if seed in found[devices[0]]:
                        require_same(seed, device, found[device][seed], devices[0], found[devices[0]][seed])
                except Exception as error:  # noqa: BLE001
                    failed.add(seed)
                    print(f"---- seed {seed}: {type(error).__name__}: {error}\n", flush=True)
    on_last = found[devices[-1]]
    agree = sum(gradient is not None and seed not in failed for seed, gradient in on_last.items())
    refused = sum(gradient is None and seed not in failed for seed, gradient in on_last.items())
    print(f"seeds {first} to {last}: {agree} agree, {len(failed)} do not, {refused} are refused", flush=True)
    return not failed


def check_in_processes(given: argparse.Namespace) -> bool:
    """Checks seeds in processes of some programs each."""
    batch = max(10, min(IN_ONE_PROCESS, (given.last - given.first) // (4 * given.jobs)))
    begin = time.monotonic()
    deadline = begin + 60 * given.minutes

    def one(at: int) -> tuple[int, int, int]:
        end = min(at + batch, given.last)
        minutes = (deadline - time.monotonic()) / 60
        if minutes <= 0:
            return 0, 0, 0
        command = [
            sys.executable,
            __file__,
            str(at),
            str(end),
            "--batch",
            "--device",
            given.device,
            "--minutes",
            str(minutes),
        ]
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
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no program after that time")
    parser.add_argument("--batch", action="store_true", help="check all seeds in this process")
    given = parser.parse_args()
    deadline = time.monotonic() + 60 * given.minutes
    devices = given.device.split(",")
    if reasons := [reason for device in devices if (reason := missing(device))]:
        sys.exit("; ".join(reasons))
    if given.last is None:
        print(GradientProgram(given.first).text)
        good = check_range(given.first, given.first + 1, devices)
    elif given.batch or (given.last - given.first <= IN_ONE_PROCESS and given.jobs == 1):
        good = check_range(given.first, given.last, devices, deadline)
    else:
        good = check_in_processes(given)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
