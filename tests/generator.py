"""Random valid kernels whose results are known: the same text runs as a plain Python function on numpy scalars.

Integers wrap in numpy as they do in kernels; reals are computed without ``fast_math``, so with the same roundings. Every location is
written by one iteration only, or by updates that may come in any order. Results must be equal, those of math functions within 4 ULP.

    python tests/generator.py FIRST LAST     checks the seeds of a range on every device and level
    python tests/generator.py SEED           prints a program and checks it
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from generator_statements import Program
from generator_types import INTEGERS, SCALARS, HostArray, Tensor

#: Programs that one process checks: code that was compiled stays loaded.
IN_ONE_PROCESS = 200


def arguments(program: Program) -> dict:
    """Fresh arguments, the same each time."""
    rng = np.random.default_rng(program.seed)

    def array(element, shape):
        if isinstance(element, Tensor):
            shape, element = (*shape, *element.shape), element.scalar
        if element not in INTEGERS:
            return np.round(rng.normal(0, 10, shape), 3).astype(SCALARS[element])
        info = np.iinfo(SCALARS[element])
        values = rng.integers(info.min, info.max, shape, dtype=info.dtype, endpoint=True)
        return values >> rng.integers(0, info.bits - 1, shape).astype(info.dtype)

    given = {name: array(*what) for name, what in program.inputs.items()}
    given |= {
        name: np.zeros(array(element, shape).shape, SCALARS[getattr(element, "scalar", element)])
        for name, (element, shape) in program.outputs.items()
    }
    given["alias"] = given[f"o_{program.alias}"]
    return given | {"p": np.int32(rng.integers(-100, 100)), "q": np.float64(np.round(rng.normal(0, 3), 2))}


def load(text: str, folder: Path, name: str):
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def in_python(program: Program, given: dict, folder: Path):
    """Runs the kernel as the plain function that it was written as, funcs too. ``None`` if some real is no number."""
    module = load(program.model, folder, f"model_{program.seed}")
    for name, value in vars(module).copy().items():
        if hasattr(value, "__wrapped__") and not name.startswith("oc"):
            setattr(module, name, value.__wrapped__)
    elements = program.inputs | program.outputs
    host = {name: HostArray(x, elements[name][0]) if name in elements else x for name, x in given.items()}
    with np.errstate(all="ignore", invalid="raise"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return module.kernel(**host)
        except FloatingPointError:
            return None


def equal(name: str, found, wanted) -> bool:
    if name != "m_f64":
        return np.array_equal(found, wanted, equal_nan=True)
    return bool(np.all(np.abs(found - wanted) <= 4 * np.spacing(np.abs(wanted))))


def check(seed: int, folder: Path) -> bool:
    """Raises if a device or a level computes something else than Python; whether the program could be compared."""
    import octants as oc

    program = Program(seed)
    oc.init(arch=oc.reference, default_fp=oc.f64, fast_math=False, log_level="error")
    expected = arguments(program)
    returned = in_python(program, expected, folder)
    if returned is None or any(np.isnan(x).any() for x in expected.values()):
        return False
    kernel = load(program.text, folder, f"generated_{seed}").kernel
    for arch, level in ((oc.reference, 1), (oc.cpu, 0), (oc.cpu, 1)):
        oc.init(arch=arch, opt_level=level, default_fp=oc.f64, fast_math=False, log_level="error", unrolling_limit=0)
        given = arguments(program)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = kernel(**given)
        where = f"seed {seed} on {arch.name} at level {level}"
        assert result == returned, f"{where}: returned {result}, Python {returned}\n{program.text}"
        for name in program.outputs:
            if not equal(name, given[name], expected[name]):
                raise AssertionError(
                    f"{where}: {name} is\n{given[name]}\nand Python has\n{expected[name]}\n{program.text}"
                )
    return True


def check_range(first: int, last: int) -> None:
    failed = skipped = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, last):
            try:
                skipped += not check(seed, Path(folder))
            except Exception as error:  # noqa: BLE001
                failed += 1
                print(f"---- seed {seed}: {type(error).__name__}: {error}\n", flush=True)
    agree = last - first - failed - skipped
    print(f"seeds {first} to {last}: {agree} programs agree, {failed} do not, {skipped} left numbers", flush=True)
    sys.exit(1 if failed else 0)


def main() -> None:
    first, last = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None
    if last is None:
        print(Program(first).text)
        check_range(first, first + 1)
    elif last - first <= IN_ONE_PROCESS:
        check_range(first, last)
    else:
        codes = [
            subprocess.run(
                [sys.executable, __file__, str(at), str(min(at + IN_ONE_PROCESS, last))], check=False
            ).returncode
            for at in range(first, last, IN_ONE_PROCESS)
        ]
        sys.exit(1 if any(codes) else 0)


if __name__ == "__main__":
    main()
