"""Random valid programs whose results are known: the same text runs as plain Python on numpy scalars.

Integers wrap in numpy as they do in kernels; reals are computed without ``fast_math``, so with the same roundings. Every location is
written by one iteration only, or by updates that may come in any order. Results must be equal, those of math functions within 4 ULP.
A program is run by the interpreter, by native code that is not optimised, and by native code at the default level, or by the devices that
are named.

    python tests/generators/generator.py SEED                             prints a program and checks it
    python tests/generators/generator.py FIRST LAST                       checks the seeds of a range
    python tests/generators/generator.py FIRST LAST --jobs 2 --summary F  the same in several processes, and counts in a file
    python tests/generators/generator.py FIRST LAST --device cuda         compares a GPU with Python and the interpreter

Compiling takes the host's time and running takes the device's, so several processes (``--jobs``) keep a GPU busy. ``--minutes`` begins no
batch after that time; what was checked by then is counted.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import importlib.util
import io
import re
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

# For what the tests share, where this runs as a script.
sys.path.append(str(Path(__file__).resolve().parents[1]))

import generator_model
import numpy as np
from devices import missing
from generator_activity import Activity, HostLists
from generator_fields import made_fields, members_of, sparse_node
from generator_model import HostArray, HostStructs, numbers
from generator_program import Program
from generator_quantised import made_quantised
from generator_sparse import made_lists
from generator_types import INTEGERS, REALS, SCALARS, StructType, Tensor, scalar_of

#: Programs that one process checks: code that was compiled stays loaded.
IN_ONE_PROCESS = 200

#: Seconds that a batch may take. Two hundred programs take about 20 on one core.
BATCH_SECONDS = 600

#: Devices and levels of optimisation that a program runs on; `None` is the default level.
RUNS = [("reference", None), ("cpu", 0), ("cpu", None)]


class Arguments:
    """The arguments of a program's kernels, the same each time. Views and their arrays are made by ``device`` or as numpy's."""

    def __init__(self, program: Program):
        self.program, self.random = program, np.random.default_rng(program.seed)
        given = {name: self.array(name, *what) for name, what in program.inputs.items()}
        given |= {
            name: np.zeros_like(self.array(name, element, shape)) for name, (element, shape) in program.outputs.items()
        }
        given |= {alias: given[name] for alias, name in program.aliases.items()}
        self.masks = {name: self.random.random(given[name].shape) < 0.6 for name in program.inputs
                      if name in program.fields and program.fields[name].levels and name not in program.outputs}  # fmt: skip
        for name, mask in self.masks.items():
            given[name] *= mask.astype(given[name].dtype)
        self.arrays = program.overlapping(given)
        self.numbers = {
            "p": np.int32(self.random.integers(-100, 100)),
            "q": np.float64(np.round(self.random.normal(0, 3), 2)),
        }
        #: What the field of structs holds in the end, a column for each member.
        self.structs: list[np.ndarray] = []
        self.struct = self.members(program.struct_param) if program.struct_param else None

    def values(self, scalar: str, shape):
        if scalar == "u1":
            return self.random.integers(0, 2, shape).astype(np.bool_)
        if scalar in REALS:
            return np.round(self.random.normal(0, 10, shape), 3).astype(SCALARS[scalar])
        info = np.iinfo(INTEGERS[scalar])
        drawn = self.random.integers(info.min, info.max, shape, dtype=info.dtype, endpoint=True)
        return drawn >> self.random.integers(0, info.bits - 1, shape).astype(info.dtype)

    def array(self, name: str, element, shape):
        # The array of a view is longer than the view, at both ends.
        if name in self.program.offsets:
            shape = (shape[0] + 7,)
        return self.values(scalar_of(element), (*shape, *(element.shape if isinstance(element, Tensor) else ())))

    def members(self, made: StructType) -> dict:
        return {
            name: self.members(t)
            if isinstance(t, StructType)
            else self.values(scalar_of(t), t.shape if isinstance(t, Tensor) else (1,))
            for name, t in made.members
        }

    def struct_in(self, names: dict, made: StructType, members: dict):
        """The argument that is a struct, of the class of a program or of its model."""
        import octants as oc

        def value(t, found):
            if isinstance(t, StructType):
                return self.struct_in(names, t, found)
            if not isinstance(t, Tensor):
                return found[0]
            maker = oc.Matrix if t.m else oc.Vector
            return maker(found, dt=getattr(oc, t.scalar))

        return names[made.name](**{name: value(t, members[name]) for name, t in made.members})

    def given(self, names: dict, array) -> dict:
        """The arguments by name; ``array`` makes an array, and a view if an offset and a size are given."""
        program = self.program
        elements = program.inputs | program.outputs
        found = {}
        for name, data in self.arrays.items():
            element, shape = elements[name]
            offset = program.offsets.get(name)
            found[name] = array(name, data, element, None if offset is None else (offset, shape[0]))
        found |= self.numbers
        if program.struct_param:
            found["st"] = self.struct_in(names, program.struct_param, self.struct)
        return found


def load(text: str, folder: Path, name: str) -> dict:
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return vars(module)


def in_python(program: Program, arguments: Arguments) -> list | None:
    """Runs the kernels as plain functions. ``None`` if some real is no number."""

    activities = {}

    def array(name, data, element, part):
        if name not in program.fields:
            whole = HostArray(data, element, clamps=name in program.clamped)
            return whole if part is None else whole.subview(*part)
        how = program.fields[name]
        activity = stored = None
        if how.levels:
            shape = program.cells_of(name)
            activity = activities.setdefault(
                how.group, Activity(how.levels, shape, how.blocks, data.shape[0] // shape[0])
            )
            activity.data.append(data)
            for at in np.argwhere(arguments.masks.get(name, np.zeros(0))):
                activity.activate_element(tuple(map(int, at)))
        if name in program.quantised:
            stored = program.quantised[name].stored
        return HostArray(data, element, how.origin, activity=activity, stored=stored)

    with np.errstate(all="ignore", invalid="raise"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = generator_model.module_of(program.model, program.default_fp)
        given = arguments.given(names, array)
        if program.struct_field:
            given["sf"] = HostStructs(names[program.struct_field.name]() for _ in range(program.size))
        if program.list_element:
            given["li"] = HostLists(program.list_element)
        names |= {name: given[name] for name in program.global_fields}
        try:
            results = [numbers(program.launch(names, kernel, given)) for kernel in program.kernels]
        except FloatingPointError:
            return None
    if program.struct_field:
        arguments.structs = members_of(program, given["sf"].elements())
    return results


def on_device(program: Program, names: dict, arguments: Arguments) -> list:
    """Runs the kernels on the device of the session; arrays of views are copied to it and back."""
    import octants as oc

    held = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fields = made_fields(program, names)
        fields |= made_quantised(program, sparse_node)
    for name, data in arguments.arrays.items():
        if name in arguments.masks:
            write_where(fields[name], arguments.masks[name], data)
        elif name in fields and not program.fields[name].levels:
            fields[name].from_numpy(data)
        if name in fields:
            held.append((fields[name], data))

    def array(name, data, element, part):
        if name in fields:
            return fields[name]
        if part is None:
            return data
        tensor = element.shape if isinstance(element, Tensor) else ()
        dtype = getattr(oc, scalar_of(element))
        if tensor:
            maker = oc.types.vector if len(tensor) == 1 else oc.types.matrix
            dtype = maker(*tensor, dtype)
        whole = oc.ndarray(dtype, data.shape[0])
        whole.from_numpy(data)
        held.append((whole, data))
        return whole[part[0] : part[0] + part[1]]

    given = arguments.given(names, array)
    if program.struct_field:
        given["sf"] = fields["sf"]
    if program.list_element:
        given["li"] = made_lists(program)
    names |= {name: given[name] for name in program.global_fields}
    # In debug mode sums that overflow are told. No program has a race.
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", message="(?s).*OC1007")
        results = [numbers(program.launch(names, kernel, given)) for kernel in program.kernels]
    for whole, data in held:
        data[...] = whole.to_numpy()
    if program.struct_field:
        arguments.structs = members_of(program, fields["sf"].to_numpy())
    return results


def write_where(field, mask: np.ndarray, values: np.ndarray) -> None:
    """Writes some elements of a sparse field, which makes their cells."""
    import octants as oc

    source = oc.field(field.dtype, shape=field.shape)
    source.from_numpy(values)
    chosen = oc.field(oc.u8, shape=field.shape)
    chosen.from_numpy(mask.astype(np.uint8))

    @oc.kernel
    def write():
        for at in oc.grouped(source):
            if chosen[at] == 1:
                field[at] = source[at]

    write()


def equal(name: str, found, wanted) -> bool:
    # What lies between the elements of a view counts, too.
    if found.base is not None and (found.base.ndim, found.base.dtype) == (found.ndim, found.dtype):
        found, wanted = found.base, wanted.base
    if found.dtype == np.bool_:
        return np.array_equal(found.view(np.uint8) != 0, wanted.view(np.uint8) != 0)
    if not name.startswith("m_"):
        return np.array_equal(found, wanted, equal_nan=name.startswith("nan_"))
    return bool(np.all(np.abs(found - wanted) <= 4 * np.spacing(np.abs(wanted))))


def check(seed: int, folder: Path, runs: list[tuple[str, int | None]]) -> bool:
    """Raises if a device at a level computes something else than Python; whether the program could be compared."""
    import octants as oc

    program = Program(seed)
    options = {
        "default_fp": getattr(oc, program.default_fp), "default_ip": getattr(oc, program.default_ip), "debug": program.debug,
        "fast_math": False, "log_level": "error", "unrolling_limit": 0,
    }  # fmt: skip
    oc.init(arch=oc.reference, **options)
    expected = Arguments(program)
    returned = in_python(program, expected)
    compared = [data for name, data in expected.arrays.items() if not name.startswith("nan_")]
    if returned is None or any(np.isnan(x).any() for x in compared):
        return False
    names = load(program.text, folder, f"generated_{seed}")
    for device, level in runs:
        level_option = {} if level is None else {"opt_level": level}
        oc.init(arch=getattr(oc, device), enable_fallback=False, **options, **level_option)
        found = Arguments(program)
        results = on_device(program, names, found)
        where = f"seed {seed} on {device}{'' if level is None else f' at level {level}'}"
        if results != returned:
            raise AssertionError(f"{where}: returned {results}, Python {returned}\n{program.text}")
        if not all(map(np.array_equal, found.structs, expected.structs)):
            raise AssertionError(f"{where}: sf is\n{found.structs}\nand Python has\n{expected.structs}\n{program.text}")
        for name in program.outputs:
            if not equal(name, found.arrays[name], expected.arrays[name]):
                raise AssertionError(
                    f"{where}: {name} is\n{found.arrays[name]}\nand Python has\n{expected.arrays[name]}\n{program.text}"
                )
    return True


def check_range(first: int, last: int, runs: list[tuple[str, int | None]]) -> bool:
    """Checks seeds in this process and prints what does not agree."""
    failed = skipped = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, last):
            try:
                skipped += not check(seed, Path(folder), runs)
            except Exception as error:  # noqa: BLE001
                failed += 1
                print(f"---- seed {seed}: {type(error).__name__}: {error}\n", flush=True)
    agree = last - first - failed - skipped
    print(f"seeds {first} to {last}: {agree} agree, {failed} do not, {skipped} have no numbers", flush=True)
    return not failed


def check_in_processes(given: argparse.Namespace) -> bool:
    """Checks seeds in processes of a few hundred programs each, and appends their counts to a file."""
    first, last, summary = given.first, given.last, given.summary
    # With many jobs a smaller batch keeps all of them busy to the end; before a deadline, less is begun that cannot end in time.
    most = IN_ONE_PROCESS if given.minutes == float("inf") else IN_ONE_PROCESS // 5
    batch = max(20, min(most, (last - first) // (4 * given.jobs)))
    deadline = time.monotonic() + 60 * given.minutes

    def one(at: int) -> tuple[int, int]:
        end = min(at + batch, last)
        if time.monotonic() > deadline:
            return 0, 0
        command = [sys.executable, __file__, str(at), str(end), "--batch"]
        if given.device:
            command += ["--device", given.device]
        try:
            done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=BATCH_SECONDS)
        except subprocess.TimeoutExpired as late:
            text = late.stdout.decode() if late.stdout else ""
            done = subprocess.CompletedProcess(command, "no answer in time", text, "")
        counts = re.findall(r"(\d+) agree, (\d+) do not", done.stdout)
        text = (
            done.stdout if counts else f"{done.stdout}{done.stderr}seeds {at} to {end}: ended with {done.returncode}\n"
        )
        print(text, end="", flush=True)
        if summary:
            with summary.open("a") as file:
                file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text.splitlines()[-1]}\n")
        return (int(counts[0][0]), int(counts[0][1])) if counts else (0, end - at)

    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        counts = list(pool.map(one, range(first, last, batch)))
    agree, failed = (sum(found) for found in zip(*counts, strict=True))
    left = sum(
        min(batch, last - at) for at, found in zip(range(first, last, batch), counts, strict=True) if not any(found)
    )
    total = f"in all, seeds {first} to {last}{f' on {given.device}' if given.device else ''}: {agree} agree, {failed} do not"
    total += f" ({time.monotonic() - begin:.0f} s{f', {left} not begun in time' if left else ''})"
    print(total)
    if summary:
        with summary.open("a") as file:
            file.write(f"{total}\n")
    return not failed


def main() -> None:
    parser = argparse.ArgumentParser(description="Checks random programs on every device.")
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int, nargs="?")
    parser.add_argument("--device", metavar="A,B", help="compare these devices with Python and the interpreter")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no batch after that time")
    parser.add_argument("--summary", type=Path)
    parser.add_argument("--batch", action="store_true", help="check all seeds in this process")
    given = parser.parse_args()
    runs = RUNS
    if given.device:
        if reasons := [reason for device in given.device.split(",") if (reason := missing(device))]:
            sys.exit("; ".join(reasons))
        runs = [("reference", None), *((device, None) for device in given.device.split(","))]
    if given.last is None:
        print(Program(given.first).text)
        good = check_range(given.first, given.first + 1, runs)
    elif given.batch or (given.last - given.first <= IN_ONE_PROCESS and given.jobs == 1 and not given.summary):
        good = check_range(given.first, given.last, runs)
    else:
        good = check_in_processes(given)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
