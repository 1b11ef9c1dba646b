"""Programs that were written for a peer: run by the command, or after one line."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.no_device

PROGRAM = """\
import sys

import quadrants as qd
import quadrants.lang.impl
from quadrants.lang import impl
from quadrants.lang.exception import QuadrantsSyntaxError
from quadrants.types.annotations import template

qd.init(arch=qd.cpu, log_level="error")


@qd.kernel
def triangle(n: qd.i32) -> qd.i32:
    total = 0
    for i in range(n):
        total += i
    return total


assert qd is sys.modules["octants"] and impl is qd.lang.impl and template is qd.template
assert QuadrantsSyntaxError is qd.QuadrantsSyntaxError and qd.__spec__.name == "octants"
print(triangle(5), sys.argv[1:], __name__, sys.modules["__main__"].triangle is triangle)


def fails():
    raise RuntimeError("as asked")


if "fail" in sys.argv:
    fails()
if "stop" in sys.argv:
    sys.exit("stopped")
sys.exit(7 if "seven" in sys.argv else None)
"""

SAYS = "10 {} __main__ True\n"


def run(tmp_path, *arguments, text=PROGRAM):
    (tmp_path / "program.py").write_text(text, encoding="utf-8")
    return subprocess.run(
        [sys.executable, *arguments], cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, timeout=240
    )


def command(tmp_path, *arguments, text=PROGRAM):
    return run(tmp_path, "-m", "octants", "run", *arguments, text=text)


def test_the_command_runs_a_program_for_a_peer(tmp_path):
    done = command(tmp_path, "--as", "quadrants", "program.py", "a", "-b")
    assert (done.returncode, done.stdout) == (0, SAYS.format(["a", "-b"])), done.stderr
    done = command(tmp_path, "--as=quadrants", "-m", "program", "seven")
    assert (done.returncode, done.stdout) == (7, SAYS.format(["seven"])), done.stderr
    done = command(tmp_path, "--as", "quadrants", "program.py", "stop")
    assert (done.returncode, done.stderr) == (1, "stopped\n")


def test_a_failing_program_shows_its_own_frames_only(tmp_path):
    done = command(tmp_path, "--as", "quadrants", "program.py", "fail")
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    files = [line.split('"')[1] for line in lines if line.lstrip().startswith("File ")]
    assert lines[0] == "Traceback (most recent call last):" and lines[-1] == "RuntimeError: as asked"
    assert len(files) == 2 and all(os.path.basename(file) == "program.py" for file in files), done.stderr


def test_programs_for_taichi_find_its_names(tmp_path):
    text = """\
import taichi as ti
from taichi.lang.exception import TaichiSyntaxError

ti.init(arch=ti.cpu, log_level="error")
x = ti.field(ti.f32, 3)


@ti.kernel
def fill():
    for i in x:
        x[i] = i


fill()
assert TaichiSyntaxError is ti.TaichiSyntaxError is ti.OctantsSyntaxError
try:
    ti.GUI
except AttributeError as error:
    print(error)
try:
    import taichi.nonsense
except ModuleNotFoundError as error:
    print(error.name)
print(x[2])
"""
    done = command(tmp_path, "--as", "taichi", "program.py", text=text)
    assert done.returncode == 0, done.stderr
    first, *rest = done.stdout.splitlines()
    assert first.startswith("oc.GUI is not in Octants yet: ") and rest == ["taichi.nonsense", "2.0"]


def test_one_line_in_a_program(tmp_path):
    text = 'import octants\n\noctants.install_as("quadrants")\noctants.install_as("quadrants")\n' + PROGRAM
    done = run(tmp_path, "program.py", "x", text=text)
    assert (done.returncode, done.stdout) == (0, SAYS.format(["x"])), done.stderr


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_that_a_program_starts_find_the_same_names(tmp_path, method):
    text = """\
import multiprocessing
import sys

import quadrants as qd


@qd.kernel
def double(n: qd.i32) -> qd.i32:
    return 2 * n


def work(n):
    qd.init(arch=qd.cpu, log_level="error")
    return qd.__name__, double(n)


if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
        print(pool.map(work, [3, 4]))
"""
    done = command(tmp_path, "--as", "quadrants", "program.py", method, text=text)
    assert (done.returncode, done.stdout) == (0, "[('octants', 6), ('octants', 8)]\n"), done.stderr


@pytest.mark.parametrize(
    "arguments, status, says",
    [
        (["--as", "numba", "program.py"], 2, "octants: --as takes quadrants or taichi, not 'numba'"),
        (["--as", "quadrants", "missing.py"], 2, "missing.py': No such file or directory"),
        (["--as", "quadrants", "-m", "missing"], 1, "octants: No module named missing"),
        (["--as", "quadrants", "-m", "missing.inside"], 1, "octants: No module named 'missing'"),
        (
            ["--as", "quadrants", "-m", "concurrent"],
            1,
            "octants: No module named concurrent.__main__; 'concurrent' is a package",
        ),
        (["--as", "quadrants", "."], 1, "octants: can't find '__main__' module in"),
        (["--as", "quadrants"], 2, "usage: octants"),
        ([], 2, "usage: octants"),
    ],
)
def test_wrong_commands(tmp_path, arguments, status, says):
    done = command(tmp_path, *arguments)
    assert done.returncode == status and says in done.stderr and "Traceback" not in done.stderr


def test_wrong_names_and_peers_that_are_there(tmp_path):
    text = """\
import sys
import types

import octants

try:
    octants.install_as("numba")
except ValueError as error:
    print(error)
sys.modules["quadrants.lang"] = types.ModuleType("quadrants.lang")
try:
    octants.install_as("quadrants")
except RuntimeError as error:
    print(error)
"""
    done = run(tmp_path, "program.py", text=text)
    assert done.stdout.splitlines() == [
        "install_as takes 'quadrants' or 'taichi', not 'numba'",
        "quadrants.lang is imported already: call octants.install_as('quadrants') before anything imports quadrants",
    ], done.stderr


def test_deep_imports_and_what_is_not_there(tmp_path):
    text = """\
import quadrants.lang.kernel
import quadrants.lang.simt.block
import quadrants as qd
from quadrants.lang.simt import block, grid, subgroup, warp
from quadrants.math.mathimpl import vec3
from quadrants.profiler.kernel_profiler import query_kernel_profiler_info
from quadrants.tools.np2ply import PLYWriter

assert qd.lang.kernel is qd.kernel and vec3 is qd.math.vec3 and PLYWriter is qd.tools.PLYWriter
assert quadrants.lang.simt.block is block
for line in (
    "from quadrants.lang import mesh",
    "import quadrants.lang.ast.transform",
    "import quadrants.pytest_plugin",
):
    try:
        exec(line)
    except ImportError as error:
        print(error)
"""
    done = command(tmp_path, "--as", "quadrants", "program.py", text=text)
    assert done.stdout.splitlines() == [
        "oc.lang.mesh is not in Octants yet: keep the relations of a mesh in fields or arrays",
        "No module named 'quadrants.lang.ast': Octants stands in for quadrants, and has no octants.lang.ast",
        "No module named 'quadrants.pytest_plugin': oc.pytest_plugin is not in Octants yet: coverage by lines ends at the call of a kernel; leave the plugin out",
    ], done.stderr
