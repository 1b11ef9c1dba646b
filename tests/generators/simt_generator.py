"""Random programs for blocks of threads: barriers, shared memory, shuffles, votes, reductions and scans, in random control flow.

    python tests/generators/simt_generator.py SEED                           prints a program and checks it
    python tests/generators/simt_generator.py FIRST LAST --jobs 2            checks the seeds of a range, in several processes
    python tests/generators/simt_generator.py FIRST LAST --device cuda       compares a GPU with the model and the interpreter
    python tests/generators/simt_generator.py FIRST LAST --wrong             programs with one fault each, which must be reported

Most programs are well-formed (`simt_program`): the model, which runs all lanes in lockstep in numpy (`simt_model`), the interpreter and the devices must leave the same in every
array, the elements behind its end as well. Integers wrap and reals are small whole numbers, so nothing depends on an order. Others have one fault (`simt_faults`): the interpreter
must refuse them, and name a line that is involved.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import sys
import tempfile
import time
import warnings
from pathlib import Path

# For what the tests share, where this runs as a script.
sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np
from devices import missing
from generator import load
from gradient_batches import Totals, check_in_processes
from simt_faults import planted
from simt_program import Program

import octants as oc

#: Programs that one process checks: code that was compiled stays loaded.
IN_ONE_PROCESS = 200


class Unread(Exception):
    """A race that compiled code has no part in: of a value that nothing uses, which is not loaded."""


def runs_of(seed: int, devices: list[str]) -> list[tuple[str, dict]]:
    """The devices that a program runs on, and options, which differ from seed to seed: optimised code takes ten times as long to compile, checked code twenty times."""
    runs: list[tuple[str, dict]] = [("reference", {"debug": seed % 5 == 0})]
    for device in devices:
        if device == "cpu":
            runs.append((device, {"opt_level": 0}))
        if device != "cpu" or seed % 3 == 1:
            runs.append((device, {"fast_math": seed % 2 == 0}))
        if seed % 16 == 4:
            runs.append((device, {"debug": True}))
    return runs


def begin(device: str, options: dict) -> None:
    oc.init(arch=getattr(oc, device), enable_fallback=False, log_level="error", offline_cache=False, **options)


def launch(names: dict, program: Program) -> dict[str, np.ndarray]:
    """Runs a program on the device of the session; what its arrays hold then."""
    given = program.arguments()
    # In debug mode sums that overflow are told. No well-formed program has a race.
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", message="(?s).*OC1007")
        names["go"](**given)
        oc.sync()
    return {name: value for name, value in given.items() if isinstance(value, np.ndarray)}


def check(seed: int, folder: Path, devices: list[str]) -> None:
    """Raises if the model, the interpreter and the devices do not agree on a well-formed program."""
    program = Program(seed)
    wanted, _ = program.expected()
    names = load(program.text, folder, f"blocks_{seed}")
    for device, options in runs_of(seed, devices):
        where = f"seed {seed} on {device} with {options}"
        begin(device, options)
        try:
            found = launch(names, program)
        except Exception as error:
            raise AssertionError(f"{where}: {type(error).__name__}: {error}\n{program.text}") from error
        for name, array in wanted.items():
            if not np.array_equal(found[name], array):
                at = np.flatnonzero(found[name] != array)
                raise AssertionError(
                    f"{where}: {name} at {at[:20]} is {found[name][at[:20]]}, in the model {array[at[:20]]}\n{program.text}"
                )


def check_wrong(seed: int, folder: Path, devices: list[str]) -> str:
    """Raises if a fault is not reported with a line that is involved; gives what kind of fault it is."""
    fault = planted(seed)
    if fault is None:
        return "none"
    program = fault.program
    path = folder / f"faulty_{seed}.py"
    names = load(program.text, folder, path.stem)
    for device in ("reference", *(["cpu"] if "cpu" in devices else [])):
        where = f"seed {seed}, {fault.kind}, on {device}"
        begin(device, {"debug": fault.debug or device != "reference"})
        try:
            launch(names, program)
        except AssertionError as error:
            text = str(error)
        else:
            if device == "cpu" and fault.kind == "race":
                raise Unread
            raise AssertionError(f"{where}: not reported, on lines {sorted(fault.lines)}\n{program.text}")
        lines = {int(line) for line in re.findall(rf"{re.escape(path.name)}:(\d+)", text)}
        if not lines & fault.lines or not any(word in text for word in fault.texts):
            raise AssertionError(f"{where}: lines {sorted(fault.lines)}, and the report is\n{text}\n{program.text}")
    return fault.kind


def check_range(first: int, last: int, devices: list[str], wrong: bool, deadline: float = float("inf")) -> Totals:
    """Checks seeds in this process and prints what does not agree. Begins no program after the deadline."""
    totals = Totals()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, last):
            if time.monotonic() > deadline:
                totals.left.append(seed)
                continue
            try:
                (check_wrong if wrong else check)(seed, Path(folder), devices)
                totals.counts["agrees"] += 1
            except Unread:
                totals.counts["kink"] += 1
            except Exception as error:  # noqa: BLE001
                totals.counts["disagrees"] += 1
                print(f"---- seed {seed}: {type(error).__name__}: {error}\n", flush=True)
    return totals


def main() -> None:
    parser = argparse.ArgumentParser(description="Checks random programs for blocks of threads.")
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int, nargs="?")
    parser.add_argument(
        "--device", default="cpu", metavar="A,B", help="compare these devices with the model and the interpreter"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no program after that time")
    parser.add_argument("--wrong", action="store_true", help="programs with one fault each")
    parser.add_argument("--batch", action="store_true", help="check all seeds in this process")
    given = parser.parse_args()
    begun = time.monotonic()
    devices = given.device.split(",")
    if reasons := [reason for device in devices if (reason := missing(device))]:
        sys.exit("; ".join(reasons))
    if given.last is None:
        fault = planted(given.first) if given.wrong else None
        print(fault.program.text if fault else Program(given.first).text)
        given.last = given.first + 1
    if given.batch or (given.last - given.first <= IN_ONE_PROCESS and given.jobs == 1):
        totals = check_range(given.first, given.last, devices, given.wrong, begun + 60 * given.minutes)
        print(f"seeds {given.first} to {given.last}: {totals}")
    else:
        options = ["--device", given.device, *(["--wrong"] if given.wrong else [])]
        totals = check_in_processes(__file__, given, options, IN_ONE_PROCESS)
        took = time.monotonic() - begun
        print(f"in all, seeds {given.first} to {given.last} on {given.device}, in {took:.0f} s: {totals}")
    sys.exit(1 if totals.counts["disagrees"] else 0)


if __name__ == "__main__":
    main()
