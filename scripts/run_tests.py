"""Runs the checks and the tests of the repository, one suite after another, and counts what passed.

    python scripts/run_tests.py              everything
    python scripts/run_tests.py lint         formatting, clippy, ruff, pyright, crate map
    python scripts/run_tests.py rust python  the named suites

All suites run even if one fails; the last line counts passed and failed, and the exit status is 1 if any failed.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent


@dataclass
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def __str__(self) -> str:
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{skipped}"


def check(name: str, *command: str | Path) -> Count:
    """A command that passes or fails as a whole; quiet unless it fails."""
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(f"  {'ok    ' if done.returncode == 0 else 'FAILED'} {name}", flush=True)
    if done.returncode == 0:
        return Count(passed=1)
    print(done.stdout, flush=True)
    return Count(failed=1)


def stream(command: list[str | Path], quiet: str | None = None) -> tuple[int, str]:
    """Runs a command, showing its output as it comes (less the lines that match `quiet`), and returns it."""
    lines: list[str] = []
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if quiet is None or not re.search(quiet, line):
                print(line, end="", flush=True)
    return process.returncode, "".join(lines)


def lint() -> Count:
    return (
        check("rustfmt", "cargo", "fmt", "--all", "--check")
        + check("crate map", "cargo", "xtask", "check-deps")
        + check("clippy", "cargo", "clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings")
        + check("ruff", BIN / "ruff", "check", "--quiet", ".")
        + check("ruff format", BIN / "ruff", "format", "--quiet", "--check", ".")
        + check("pyright", BIN / "pyright", "--warnings")
    )


def rust() -> Count:
    """Unit tests, integration tests, filetests and documentation tests of every crate."""
    # The extension module needs an interpreter around it: its tests are the Python ones.
    workspace = ["--workspace", "--exclude", "octants_python", "--no-fail-fast"]
    if shutil.which("cargo-nextest"):
        count = nextest(workspace)
    else:
        count = cargo_test([*workspace, "--lib", "--bins", "--tests"])
    return count + cargo_test([*workspace, "--doc"])


def nextest(selection: list[str]) -> Count:
    code, output = stream(["cargo", "nextest", "run", *selection, "--status-level=fail", "--cargo-quiet"])
    summary = re.search(r"tests? run: (\d+) passed.*", output)
    if summary is None:
        return Count(failed=1)
    numbers = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|timed out|skipped)", summary[0])}
    failed = numbers.get("failed", 0) + numbers.get("timed out", 0)
    return died(code, Count(numbers.get("passed", 0), failed, numbers.get("skipped", 0)))


def cargo_test(selection: list[str]) -> Count:
    code, output = stream(
        ["cargo", "test", "--quiet", *selection], quiet=r"^[.i]*( \d+/\d+)?$|^running|^test result: ok"
    )
    count = Count()
    for passed, failed, ignored in re.findall(r"test result: .*? (\d+) passed; (\d+) failed; (\d+) ignored", output):
        count += Count(int(passed), int(failed), int(ignored))
    return died(code, count)


def died(code: int, count: Count) -> Count:
    """A command that failed without a failed test did not compile, or a process of it was killed: that counts too."""
    return Count(count.passed, 1, count.skipped) if code != 0 and count.failed == 0 else count


def python() -> Count:
    """Behaviour tests and the code blocks of the documents, against the installed wheel."""
    return pytest(sys.executable)


def torch() -> Count:
    """The tests that need torch, in an environment that has it, unless the first one does."""
    if importlib.util.find_spec("torch") is not None:
        print("  the suite `python` has run them: its environment has torch")
        return Count()
    wheels = sorted((ROOT / "dist").glob("*.whl"))
    if len(wheels) != 1:
        print(f"  FAILED there should be one wheel in dist/, not {len(wheels)}: run `make wheel`")
        return Count(failed=1)
    environment = ROOT / ".venv" / "torch"
    code, output = stream([ROOT / "scripts" / "make_torch_environment.sh", environment, wheels[0], sys.executable])
    if code == 3:
        print(f"  skipped: {output.strip().splitlines()[-1]}")
        return Count(skipped=1)
    if code != 0:
        return Count(failed=1)
    return pytest(environment / "bin" / "python", "--needing", "torch")


def pytest(interpreter: str | Path, *options: str) -> Count:
    """Runs the tests of Python in an interpreter's environment: a process for each core, then those that need the machine alone."""
    tests = ROOT / "tests"
    alone = [path for path in sorted(tests.rglob("test_*.py")) if "pytest.mark.alone" in path.read_text()]
    # The tests of a file stay in one process, whose imports and compiled kernels they share.
    spread = ["-n", "auto", "--dist", "loadfile", "--durations", "25"]
    return run_pytest(interpreter, tests, "-m", "not alone", *spread, *options) + run_pytest(
        interpreter, *alone, "-m", "alone", *options
    )


def run_pytest(interpreter: str | Path, *arguments: str | Path) -> Count:
    report = ROOT / ".venv" / "pytest.xml"
    report.unlink(missing_ok=True)
    code, _ = stream([interpreter, "-m", "pytest", f"--junitxml={report}", *arguments])
    if code == 5:  # none of these tests belongs here
        return Count()
    if not report.exists():
        return Count(failed=1)
    suite = ElementTree.parse(report).getroot().find("testsuite")
    assert suite is not None
    total, errors, failures, skipped = (int(suite.attrib[key]) for key in ("tests", "errors", "failures", "skipped"))
    return died(code, Count(total - errors - failures - skipped, errors + failures, skipped))


SUITES: dict[str, Callable[[], Count]] = {"lint": lint, "rust": rust, "python": python, "torch": torch}


def main() -> None:
    names = sys.argv[1:] or list(SUITES)
    unknown = [name for name in names if name not in SUITES]
    if unknown:
        sys.exit(f"no suite named {', '.join(unknown)}; there are {', '.join(SUITES)}")
    os.environ.setdefault("CARGO_TERM_COLOR", "always" if sys.stdout.isatty() else "never")
    total = Count()
    for name in names:
        print(f"\n== {name}", flush=True)
        start = time.monotonic()
        count = SUITES[name]()
        print(f"== {name}: {count} ({time.monotonic() - start:.0f} s)", flush=True)
        total += count
    print(f"\nTOTAL: {total}")
    sys.exit(1 if total.failed else 0)


if __name__ == "__main__":
    main()
