"""Random programs whose derivatives are known three times: reverse mode, forward mode and differences, of compiled code.

    python tests/generators/gradient_generator.py SEED                           prints a program and checks it
    python tests/generators/gradient_generator.py FIRST LAST --jobs 2            checks the seeds of a range, in several processes
    python tests/generators/gradient_generator.py FIRST LAST --device cpu,cuda   on other devices; each gives the gradients that the first one gives
    python tests/generators/gradient_generator.py FIRST LAST --debug             in debug mode, which compares what a loop keeps with what was counted
    python tests/generators/gradient_generator.py FIRST LAST --single            also in 32 bits with fast mathematics, the default of sessions
    python tests/generators/gradient_generator.py FIRST LAST --second            also products of second derivatives with a vector

The loss of a program is a weighted sum of what its kernel writes. Along a random direction, the gradient of a tape must be what forward mode gives, to
1e-9, and the quotient of differences in f64, to 1e-5. Where quotients of two steps differ from each other, a branch or a loop's end changes in between:
such a point is a kink, and the two modes are compared alone. A program that has no derivative is refused, with a code of its own. In 32 bits the gradient
must be that in 64 bits, as far as 32 bits go, unless the point is a kink. Second derivatives along a direction must be the quotient of differences of the
gradient, unless that has a kink there; a program with a gradient has them.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import NamedTuple

# For what the tests share, where this runs as a script.
sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np
from devices import missing
from generator import load
from gradient_batches import OUTCOMES, Totals, check_in_processes, close
from gradient_programs import COUNTS, WEIGHTS, GradientProgram

import octants as oc

#: Programs that one process checks: starting it, and opening the device, takes as long as some of them.
IN_ONE_PROCESS = 100

#: Steps of differences. Where the quotients of two differ, a branch or a loop's end changes in between.
STEPS = (1e-6, 2e-7, 5e-6)

#: Codes of programs that have no derivative.
REFUSALS = ("OC1101", "OC1102", "OC1103", "OC1104", "OC1105")


#: How far the gradients of another device, and those in 32 bits, may be off.
SAME = {"f64": 1e-9, "f32": 2e-3}

VEC, MAT = (oc.types.ndarray(ndim=ndim) for ndim in (1, 2))


@oc.kernel
def prepare_arrays(points: MAT, at: oc.i32, x: VEC, w: VEC, y: VEC, z: MAT, total: VEC):
    prepare(points, at, x, w, y, z, total)


@oc.kernel
def prepare_fields(points: MAT, at: oc.i32, x: oc.template(), w: oc.template(), y: oc.template(), z: oc.template(), total: oc.template()):  # fmt: skip
    prepare(points, at, x, w, y, z, total)


@oc.func
def prepare(points: oc.template(), at: oc.i32, x: oc.template(), w: oc.template(), y: oc.template(), z: oc.template(), total: oc.template()):  # fmt: skip
    """All reals as they are before the program runs, at one of the points."""
    for i in range(x.shape[0]):
        x[i] = points[at, i]
        y[i] = 0.25
        for k in oc.static(range(3)):
            z[i, k] = 0.25
    for k in range(w.shape[0]):
        w[k] = points[at, x.shape[0] + k]
    total[0] = 0.25


@oc.kernel
def measure_arrays(y: VEC, z: MAT, total: VEC, c: VEC, loss: VEC, at: oc.i32):
    measure(y, z, total, c, loss, at)


@oc.kernel
def measure_fields(y: oc.template(), z: oc.template(), total: oc.template(), c: VEC, loss: VEC, at: oc.i32):
    measure(y, z, total, c, loss, at)


@oc.func
def measure(y: oc.template(), z: oc.template(), total: oc.template(), c: oc.template(), loss: oc.template(), at: oc.i32):  # fmt: skip
    for i in range(y.shape[0]):
        loss[at] += c[i] * y[i] + 0.3 * c[i] * z[i, 0] - c[i] * z[i, 2]
    loss[at] += 0.7 * total[0]


class Point:
    """A program's arrays on the device of the session, with the numbers of its seed.

    What differences need is computed at all points before any of it is read: a GPU that processes share lets each wait for its turn."""

    def __init__(self, program: GradientProgram, kernel):
        self.program, self.kernel, self.real = program, kernel, getattr(oc, program.type)
        self.prepare, self.measure = (
            (prepare_fields, measure_fields) if program.fields else (prepare_arrays, measure_arrays)
        )
        numbers = np.random.default_rng(program.seed)
        self.inputs = {"x": numbers.uniform(-1.1, 1.1, program.size), "w": numbers.uniform(-1.1, 1.1, WEIGHTS)}
        weights = numbers.uniform(-1, 1, program.size)
        self.directions = [
            {name: numbers.uniform(-1, 1, len(values)) for name, values in self.inputs.items()} for _ in range(2)
        ]
        rows = np.concatenate([[0], np.cumsum(numbers.integers(-1, 4, program.size))])
        integers = {"n": numbers.integers(0, 5, COUNTS), "row": rows, "link": numbers.integers(0, COUNTS, COUNTS)}
        self.p = int(numbers.integers(0, 5))
        dense = oc.field if program.fields else oc.ndarray
        self.arrays = {
            name: dense(self.real, shape, needs_grad=True, needs_dual=True) for name, shape in program.reals.items()
        }
        for name, values in integers.items():
            self.arrays[name] = dense(oc.i32, values.shape)
            self.arrays[name].from_numpy(values.astype(np.int32))
        self.c = oc.ndarray(oc.f64, program.size)
        self.c.from_numpy(weights)
        self.loss = oc.ndarray(self.real, 1, needs_grad=True, needs_dual=True)
        points = self._points()
        self.points = oc.ndarray(oc.f64, points.shape)
        self.points.from_numpy(points)
        self.values = oc.ndarray(oc.f64, len(points))

    def _points(self) -> np.ndarray:
        """Where the program runs: first at its inputs, then ahead of and behind them, along each direction in each step."""
        at = np.concatenate(list(self.inputs.values()))
        along = [np.concatenate(list(direction.values())) for direction in self.directions]
        return np.stack([at, *(at + sign * step * one for one in along for step in STEPS for sign in (1, -1))])

    def reset(self, at: int) -> None:
        self.prepare(self.points, at, *(self.arrays[name] for name in ("x", "w", "y", "z", "total")))

    def run(self, loss: oc.Ndarray, at: int) -> None:
        given = [self.arrays.get(name, self.p) for name in self.program.params]
        self.kernel(*given)
        self.measure(self.arrays["y"], self.arrays["z"], self.arrays["total"], self.c, loss, at)

    def gradient(self, at: int = 0) -> dict:
        """By reverse mode."""
        self.reset(at)
        self.loss.fill(0)
        with oc.ad.Tape(self.loss):
            self.run(self.loss, 0)
        return {name: self.arrays[name].grad.to_numpy() for name in self.inputs}

    def second(self, direction: dict) -> tuple[dict, dict]:
        """The gradient, and the products of second derivatives with a direction."""
        self.reset(0)
        inputs = [self.arrays[name] for name in self.inputs]
        _, gradients, products = oc.ad.hessian_vector_product(
            lambda: self.run(self.loss, 0), self.loss, inputs, [direction[name] for name in self.inputs]
        )
        return dict(zip(self.inputs, gradients, strict=True)), dict(zip(self.inputs, products, strict=True))

    def gradient_quotients(self) -> list[np.ndarray]:
        """Of the first direction: differences of all gradients in each step."""
        found = []
        for number, step in enumerate(STEPS):
            ahead, behind = (flat(self.gradient(1 + 2 * number + side)) for side in (0, 1))
            found.append((ahead - behind) / (2 * step))
        return found

    def tangent(self, direction: dict) -> float:
        """The derivative along a direction, by forward mode."""
        found = 0.0
        for name in self.inputs:
            self.reset(0)
            self.loss.fill(0)
            with oc.ad.FwdMode(loss=self.loss, param=self.arrays[name], seed=direction[name]):
                self.run(self.loss, 0)
            found += float(self.loss.dual[0])
        return found

    def quotients(self) -> np.ndarray:
        """The derivative along each direction by differences, in each step."""
        self.values.fill(0)
        for at in range(1, self.points.shape[0]):
            self.reset(at)
            self.run(self.values, at)
        values = self.values.to_numpy()[1:].reshape(len(self.directions), len(STEPS), 2)
        return (values[..., 0] - values[..., 1]) / (2 * np.array(STEPS))


def flat(derivatives: dict) -> np.ndarray:
    return np.concatenate(list(derivatives.values()))


class Way(NamedTuple):
    """On which device programs run, and the type of their reals."""

    device: str
    real: str
    debug: bool = False
    second: bool = False

    def __str__(self) -> str:
        return f"{self.device} in {self.real}"


def compare(point: Point, gradient: dict) -> bool:
    """Whether differences, too, agree with the gradient at a point, which is a kink otherwise. Raises if derivatives do not agree."""
    smooth = True
    for direction, quotients in zip(point.directions, point.quotients(), strict=True):
        back = sum(float(gradient[name] @ direction[name]) for name in gradient)
        along = point.tangent(direction)
        if not close(along, back, 1e-9):
            raise AssertionError(f"forward mode gives {along!r}, reverse mode {back!r}")
        if not any(close(back, quotient, 1e-5) for quotient in quotients):
            if all(close(quotients[0], quotient, 1e-4) for quotient in quotients):
                raise AssertionError(f"differences give {quotients}, reverse mode {back!r}")
            smooth = False
    return smooth


def compare_second(point: Point, gradient: dict) -> bool:
    """Whether differences of the gradient agree with second derivatives at a point, where the gradient has a kink otherwise. Raises if derivatives do not agree."""
    found, products = point.second(point.directions[0])
    if not np.allclose(flat(found), flat(gradient), rtol=1e-9, atol=1e-9):
        raise AssertionError(f"beside second derivatives the gradient is\n{found}, and without\n{gradient}")
    back = flat(products)

    def is_near(one: np.ndarray, bound: float) -> bool:
        return bool(np.abs(one - back).max() <= bound * (1 + max(np.abs(one).max(), np.abs(back).max())))

    quotients = point.gradient_quotients()
    if any(is_near(quotient, 1e-5) for quotient in quotients):
        return True
    size = 1 + np.abs(quotients[0]).max()
    if all(np.abs(quotients[0] - quotient).max() <= 1e-4 * size for quotient in quotients):
        raise AssertionError(f"differences of the gradient give\n{quotients[0]}, second derivatives are\n{back}")
    return False


def is_limited(seed: int) -> bool:
    """Whether iterations of the program's derivative run in batches."""
    return seed % 7 == 0


def is_optimised(seed: int) -> bool:
    """Whether the program's code is optimised as usual: compiling takes three times as long then, and nearly all of the time is for compiling."""
    return seed % 8 == 2


def kind_of(seed: int) -> tuple[bool, bool]:
    """What the session of a program depends on."""
    return is_limited(seed), is_optimised(seed)


def open_session(way: Way, limited: bool, optimised: bool = True) -> None:
    """A session for programs of one kind. The limit is enough for each iteration."""
    limit = {"tape_memory_limit": 1 << 16} if limited else {}
    limit |= {} if optimised else {"opt_level": 0}
    options = {
        "default_fp": getattr(oc, way.real),
        "fast_math": way.real == "f32",
        "debug": way.debug,
        "log_level": "error",
        "enable_fallback": False,
    }
    oc.init(arch=getattr(oc, way.device), offline_cache=False, **options, **limit)


def examine(seed: int, folder: Path, way: Way, codes: dict[int, str] | None = None) -> tuple[str, dict | None]:
    """What became of a program in the session, which is one of that way, and its gradients: "agrees", "kink" if differences say nothing of it, or "refused", without
    gradients; by which code goes into `codes`. Raises if derivatives do not agree."""
    program = GradientProgram(seed, way.real)
    names = load(program.text, folder, f"gradient_{seed}_{way.device}_{way.real}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Of a race nothing could be compared.
        warnings.filterwarnings("error", "(?s).*OC1007")
        point = Point(program, names["program"])
        try:
            gradient = point.gradient()
        except oc.OctantsCompilationError as error:
            found = [code for code in re.findall(r"OC\d{4}", str(error)) if code in REFUSALS]
            if not found:
                raise
            if codes is not None:
                codes[seed] = found[0]
            return "refused", None
        if way.real == "f32":
            # Differences would say little.
            return "agrees", gradient
        try:
            smooth = compare(point, gradient)
            if way.second:
                smooth &= compare_second(point, gradient)
            return ("agrees" if smooth else "kink"), gradient
        except AssertionError as error:
            raise AssertionError(f"on {way}: {error}\n{program.text}") from None


def require_same(seed: int, way: Way, found: dict | None, other: Way, expected: dict | None) -> None:
    """Raises if two ways give other gradients."""
    if (found is None) != (expected is None):
        refuses, derives = (way, other) if found is None else (other, way)
        raise AssertionError(f"{refuses} refuses what {derives} derives\n{GradientProgram(seed).text}")
    for name in found or ():
        bound = SAME[way.real]
        if way.real == "f32":
            # What cancels has errors of what it is made of.
            bound *= 1 + max(np.abs(each).max() for each in expected.values())
        if not np.allclose(found[name], expected[name], rtol=bound, atol=bound):
            raise AssertionError(
                f"the gradient of {name} is\n{found[name]} on {way},\n{expected[name]} on {other}\n{GradientProgram(seed).text}"
            )


def check(seed: int, folder: Path, device: str) -> str:
    """Checks one program in sessions of its own, also in 32 bits, and every third one's second derivatives. Raises if derivatives do not agree. Gives what
    became of it."""
    ways = [Way(device, real, second=seed % 3 == 0) for real in SAME]
    found = []
    for way in ways:
        open_session(way, *kind_of(seed))
        found.append(examine(seed, folder, way))
    (outcome, gradient), (_, single) = found
    if outcome != "kink":
        require_same(seed, ways[1], single, ways[0], gradient)
    return outcome


def check_range(first: int, last: int, ways: list[Way], deadline: float = float("inf")) -> Totals:
    """Checks seeds in this process and prints what does not agree. Begins no program after the deadline.

    Programs share sessions, four for each way: opening one, and compiling what measures them all, takes as long as a program."""
    seeds = sorted(range(first, last), key=kind_of)
    first_gradients: dict[int, dict | None] = {}
    became: dict[int, str] = {}
    codes: dict[int, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for way in ways:
            opened = None
            for seed in seeds:
                if time.monotonic() > deadline:
                    # It has not run on all of them.
                    if became.get(seed) != "disagrees":
                        became.pop(seed, None)
                    continue
                if opened != kind_of(seed):
                    opened = kind_of(seed)
                    open_session(way, *opened)
                try:
                    outcome, gradient = examine(seed, Path(folder), way, codes)
                    if way == ways[0]:
                        first_gradients[seed] = gradient
                    elif seed in first_gradients and not (way.real == "f32" and became.get(seed) == "kink"):
                        require_same(seed, way, gradient, ways[0], first_gradients[seed])
                    if became.get(seed) not in ("disagrees", "kink"):
                        became[seed] = outcome
                except Exception as error:  # noqa: BLE001
                    became[seed] = "disagrees"
                    print(f"---- seed {seed}: {type(error).__name__}: {error}\n", flush=True)
    totals = Totals({word: sum(each == word for each in became.values()) for word in OUTCOMES})
    totals.codes.update(codes.values())
    totals.left = [seed for seed in range(first, last) if seed not in became]
    return totals


def main() -> None:
    parser = argparse.ArgumentParser(description="Checks derivatives of random programs.")
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int, nargs="?")
    parser.add_argument(
        "--device", metavar="A,B", default="cpu", help="where they run; the gradients of all are compared"
    )
    parser.add_argument("--single", action="store_true", help="also in 32 bits with fast mathematics")
    parser.add_argument("--debug", action="store_true", help="in debug mode")
    parser.add_argument("--second", action="store_true", help="also second derivatives")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no program after that time")
    parser.add_argument("--batch", action="store_true", help="check all seeds in this process")
    given = parser.parse_args()
    begun = time.monotonic()
    devices = given.device.split(",")
    if reasons := [reason for device in devices if (reason := missing(device))]:
        sys.exit("; ".join(reasons))
    ways = [
        Way(device, real, given.debug, given.second) for real in list(SAME)[: 1 + given.single] for device in devices
    ]
    if given.last is None:
        print(GradientProgram(given.first).text)
        given.last = given.first + 1
    if given.batch or (given.last - given.first <= IN_ONE_PROCESS and given.jobs == 1):
        totals = check_range(given.first, given.last, ways, begun + 60 * given.minutes)
        print(f"seeds {given.first} to {given.last}: {totals}")
    else:
        options = [
            "--device",
            given.device,
            *["--single"] * given.single,
            *["--debug"] * given.debug,
            *["--second"] * given.second,
        ]
        totals = check_in_processes(__file__, given, options, IN_ONE_PROCESS)
        took = time.monotonic() - begun
        print(f"in all, seeds {given.first} to {given.last} on {given.device}, in {took:.0f} s: {totals}")
    sys.exit(1 if totals.counts["disagrees"] else 0)


if __name__ == "__main__":
    main()
