"""Random whole programs under a tape: kernels, and what a host does between them, against differences of the program as plain Python.

    python tests/generators/tape_generator.py SEED                           prints a program and checks it
    python tests/generators/tape_generator.py FIRST LAST --jobs 2            checks the seeds of a range, in several processes
    python tests/generators/tape_generator.py FIRST LAST --device cuda       on another device

The text of a program (`tape_programs`) runs twice: compiled, in a tape, and as plain Python (`tape_model`), which knows nothing of derivatives. The loss and all arrays must be the same, to
1e-9; along random directions of all first values, the gradient of the tape must be the quotient of differences of the Python program, to 1e-5. The tape runs a second time, and gives the
same. Some programs run in forward mode as well, some for products of second derivatives, some in debug mode with `validation=True`, some in bounded memory. Where quotients of several steps differ from each other,
a branch or a loop's end changes in between: such a point is a kink, and nothing is compared but values. What a tape cannot follow it refuses, with a code. All else is a disagreement.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import tempfile
import time
import warnings
from pathlib import Path

# For what the tests share, where this runs as a script.
sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np
import tape_model
from devices import missing
from generator import load
from gradient_batches import Totals, check_in_processes, close
from tape_programs import TapeProgram

import octants as oc

#: Programs that one process checks.
IN_ONE_PROCESS = 100

#: Programs of one session: a tape clears the gradients of all of its fields.
IN_ONE_SESSION = 20

#: Steps of differences, and of second differences.
STEPS, SECOND_STEPS = (1e-6, 2e-7, 5e-6), (1e-3, 2e-3)

#: Codes of programs that a tape cannot follow.
REFUSALS = ("OC1101", "OC1102", "OC1103", "OC1104", "OC1105", "OC1106")

#: Refusals without a code.
SENTENCES = (
    "checkpoint has no second derivatives",
    "the steps of a checkpoint have come to another state",
    "is too small for this Tape",
    "has no second derivatives, since",
)


class Model:
    """A program as plain Python."""

    def __init__(self, program: TapeProgram):
        self.names, self.world = tape_model.module_of(program.text)
        self.arrays, self.loss = self.names["ARRAYS"], self.names["loss"]
        self.numbers = np.random.default_rng(program.seed)
        self.move()

    def move(self) -> None:
        """To other first values, from which the program runs once."""
        self.start = [self.numbers.uniform(-1, 1, array.to_numpy().shape) for array in self.arrays]
        self.world.first()
        self.value = self.run(self.start)
        #: What arrays hold in the end.
        self.end = [array.to_numpy() for array in self.arrays]

    def run(self, start: list[np.ndarray]) -> float:
        begin(self.names, start)
        self.names["program"]()
        return self.loss[0]

    def moved(self, direction: list[np.ndarray], step: float) -> float:
        """The loss at another start. What is constant is what it was."""
        self.world.again()
        return self.run([at + step * along for at, along in zip(self.start, direction, strict=True)])

    def quotients(self, direction: list[np.ndarray]) -> list[float]:
        return [(self.moved(direction, step) - self.moved(direction, -step)) / (2 * step) for step in STEPS]

    def second_quotients(self, direction: list[np.ndarray]) -> list[float]:
        return [
            (self.moved(direction, step) - 2 * self.value + self.moved(direction, -step)) / step**2
            for step in SECOND_STEPS
        ]


def begin(names: dict, start: list[np.ndarray]) -> None:
    """All arrays as they are before the program runs."""
    for array, values in zip(names["ARRAYS"], start, strict=True):
        if any(array is one for one in names["SPARSE"]):
            write_all(array, values)
        else:
            array.from_numpy(values)
    for array in names["CONSTANTS"]:
        array.fill(0)
    for array, values in names["INTEGERS"]:
        array.from_numpy(np.array(values, dtype=np.int32))
    if "bare" in names:
        names["bare"].fill(0)
    names["loss"].fill(0)


@oc.kernel
def write_every_element(array: oc.template(), values: oc.types.ndarray(dtype=oc.f64, ndim=1)):
    for i in range(values.shape[0]):
        array[i] = values[i]


def write_all(array, values: np.ndarray) -> None:
    """Makes all cells of a sparse field."""
    if isinstance(array, tape_model.Array):
        array.from_numpy(values)
    else:
        write_every_element(array, values)


class Compiled:
    """A program on the device of the session."""

    def __init__(self, program: TapeProgram, folder: Path):
        self.names = load(program.text, folder, f"tape_{program.seed}")
        self.program, self.loss, self.arrays = self.names["program"], self.names["loss"], self.names["ARRAYS"]
        self.start: list[np.ndarray] = []

    def gradient(self, **options) -> list[np.ndarray]:
        """By a tape."""
        begin(self.names, self.start)
        with oc.ad.Tape(self.loss, **options):
            self.program()
        return [array.grad.to_numpy() for array in self.arrays]

    def tangent(self, at: int, direction: np.ndarray) -> float:
        """By forward mode, along a direction of one array."""
        begin(self.names, self.start)
        with oc.ad.FwdMode(loss=self.loss, param=self.arrays[at], seed=direction.ravel()):
            self.program()
        return float(self.loss.dual[0])

    def curvature(self, at: int, direction: np.ndarray) -> tuple[np.ndarray, float]:
        """The gradient by one array, and its derivative along a direction, times that."""
        begin(self.names, self.start)
        one = self.arrays[at]
        _, gradient, products = oc.ad.hessian_vector_product(self.program, self.loss, one, direction)
        return gradient, float((np.asarray(products) * direction).sum())


class Refused(Exception):
    """A program, with a code."""


def refusing(call, *args, **kwargs):
    """What a call gives, unless the program is refused."""
    try:
        return call(*args, **kwargs)
    except (oc.OctantsCompilationError, oc.OctantsRuntimeError) as error:
        codes = re.findall(r"OC\d{4}", str(error))
        if codes and codes[0] in REFUSALS:
            raise Refused(codes[0]) from error
        if any(sentence in str(error) for sentence in SENTENCES):
            raise Refused("none") from error
        raise


def is_debugged(seed: int) -> bool:
    """Whether the program runs in debug mode."""
    return seed % 16 == 5


def is_optimised(seed: int) -> bool:
    """Whether its code is optimised as usual: compiling takes three times as long then."""
    return seed % 4 == 1


def open_session(seed: int, device: str) -> None:
    level = {} if is_optimised(seed) else {"opt_level": 0}
    oc.init(
        arch=getattr(oc, device), default_fp=oc.f64, offline_cache=False, debug=is_debugged(seed), log_level="error", enable_fallback=False, **level
    )  # fmt: skip


def require_same(what: str, found, expected, bound: float = 1e-9) -> None:
    if not np.allclose(found, expected, rtol=bound, atol=bound, equal_nan=True):
        raise AssertionError(f"{what}: {found}, and not {expected}")


def examine(seed: int, folder: Path) -> tuple[str, str]:
    """What became of a program in the session: "agrees", "kink" if differences say nothing of it, or "refused", with a code. Raises if something does not agree."""
    program = TapeProgram(seed)
    model = Model(program)
    if not math.isfinite(model.value) or abs(model.value) > 1e6:
        return "kink", ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return compare(program, model, Compiled(program, folder))
        except Refused as refused:
            return "refused", str(refused)


def compare(program: TapeProgram, model: Model, compiled: Compiled) -> tuple[str, str]:
    seed = program.seed
    validation = {"validation": True} if is_debugged(seed) else {}
    bounded = {"memory": (3000, "10MB")[seed % 2]} if program.is_bounded else {}
    names = [name for name, one in program.arrays.items() if name not in program.constants and one.has_gradient]
    smooth = compare_here(program, names, model, compiled, validation | bounded, bounded)
    # The same code from other values, which bounds and branches follow.
    model.move()
    if math.isfinite(model.value) and abs(model.value) < 1e6:
        smooth &= compare_here(program, names, model, compiled, bounded, bounded)
    return ("agrees" if smooth else "kink"), ""


def compare_here(
    program: TapeProgram, names: list[str], model: Model, compiled: Compiled, options: dict, again_with: dict
) -> bool:
    """Whether differences say something. Raises if something does not agree. The second tape has options of its own."""
    seed, compiled.start = program.seed, model.start
    gradient = refusing(compiled.gradient, **options)
    require_same("the loss", float(compiled.loss[0]), model.value)
    for name, array, expected in zip(names, compiled.arrays, model.end, strict=True):
        require_same(f"{name} in the end", array.to_numpy(), expected)
    if seed % 2:
        for name, first, again in zip(names, gradient, refusing(compiled.gradient, **again_with), strict=True):
            require_same(f"the gradient of {name} by a second tape", again, first)
    # Along a direction of all first values, and one of a single array.
    is_input = [name not in program.set_by_host for name in names]
    along = [model.numbers.uniform(-1, 1, at.shape) * used for at, used in zip(model.start, is_input, strict=True)]
    lines = [
        i
        for i, one in enumerate(model.arrays)
        if isinstance(one.cells[0], float) and len(one.shape) == 1 and is_input[i]
    ]
    at = lines[int(model.numbers.integers(len(lines)))]
    only = [direction if i == at else 0 * direction for i, direction in enumerate(along)]
    for direction in (along, only):
        back = sum(float((one * other).sum()) for one, other in zip(gradient, direction, strict=True))
        quotients = model.quotients(direction)
        if not any(close(back, quotient, 1e-5) for quotient in quotients):
            if all(close(quotients[0], quotient, 1e-4) for quotient in quotients):
                raise AssertionError(
                    told(program, names, model, gradient, f"differences give {quotients}, the tape {back!r}")
                )
            return False
    has_duals = all(one.kind != "tensor" for one in program.arrays.values())
    if seed % 3 == 0 and has_duals and not program.constants:
        tangent = refusing(compiled.tangent, at, along[at])
        back = float((gradient[at] * along[at]).sum())
        if not close(tangent, back, 1e-8):
            raise AssertionError(f"forward mode by {names[at]} gives {tangent!r}, the tape {back!r}")
    # Steps of a checkpoint and tapes in bounded memory have no second derivatives.
    if seed % 4 == 2 and has_duals and "checkpoint" not in program.features and not again_with:
        again, curvature = refusing(compiled.curvature, at, along[at])
        require_same(f"the gradient of {names[at]} with second derivatives", again, gradient[at])
        near, far = model.second_quotients(only)
        if close(near, far, 1e-3) and not close(curvature, (4 * near - far) / 3, 1e-4):
            raise AssertionError(
                f"second differences by {names[at]} give {near!r} and {far!r}, derivatives {curvature!r}"
            )
    return True


def told(program: TapeProgram, names: list[str], model: Model, gradient: list[np.ndarray], text: str) -> str:
    """Which elements do not agree."""
    lines = [text]
    for at, name in enumerate(names):
        expected = np.zeros(model.start[at].shape)
        for index in np.ndindex(expected.shape):
            direction = [np.zeros(one.shape) for one in model.start]
            direction[at][index] = 1
            expected[index] = model.quotients(direction)[0]
        if not np.allclose(expected, gradient[at], rtol=1e-4, atol=1e-5):
            lines.append(f"{name}: the tape gives {gradient[at].tolist()}, differences {expected.round(6).tolist()}")
    return "\n".join(lines)


def check(seed: int, folder: Path, device: str) -> str:
    """Checks one program in a session of its own. Raises if something does not agree. Gives what became of it."""
    open_session(seed, device)
    return examine(seed, folder)[0]


def check_range(first: int, last: int, device: str, deadline: float = float("inf")) -> Totals:
    """Checks seeds in this process and prints what does not agree. Begins no program after the deadline."""
    totals = Totals()
    kind, begun = None, 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in sorted(range(first, last), key=lambda seed: (is_debugged(seed), is_optimised(seed))):
            if time.monotonic() > deadline:
                totals.left.append(seed)
                continue
            if kind != (is_debugged(seed), is_optimised(seed)) or begun % IN_ONE_SESSION == 0:
                kind = (is_debugged(seed), is_optimised(seed))
                open_session(seed, device)
            begun += 1
            try:
                outcome, code = examine(seed, Path(folder))
                if code:
                    totals.codes[code] += 1
            except Exception as error:  # noqa: BLE001
                outcome = "disagrees"
                print(f"---- seed {seed}: {type(error).__name__}: {error}\n", flush=True)
            totals.counts[outcome] += 1
    totals.left.sort()
    return totals


def main() -> None:
    parser = argparse.ArgumentParser(description="Checks derivatives of random whole programs.")
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int, nargs="?")
    parser.add_argument("--device", default="cpu", help="where they run")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no program after that time")
    parser.add_argument("--batch", action="store_true", help="check all seeds in this process")
    given = parser.parse_args()
    begun = time.monotonic()
    if reason := missing(given.device):
        sys.exit(reason)
    if given.last is None:
        print(TapeProgram(given.first).text)
        given.last = given.first + 1
    if given.batch or (given.last - given.first <= IN_ONE_PROCESS and given.jobs == 1):
        totals = check_range(given.first, given.last, given.device, begun + 60 * given.minutes)
        print(f"seeds {given.first} to {given.last}: {totals}")
    else:
        totals = check_in_processes(__file__, given, ["--device", given.device], IN_ONE_PROCESS)
        took = time.monotonic() - begun
        print(f"in all, seeds {given.first} to {given.last} on {given.device}, in {took:.0f} s: {totals}")
    sys.exit(1 if totals.counts["disagrees"] else 0)


if __name__ == "__main__":
    main()
