"""Compiled kernels on disk: found by other processes, never stale, and never in the way."""

import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.no_device

#: Fields, a gradient, branches, templates, functions, prints and checks; what it prints is its result.
PROGRAM = """
import numpy as np
import octants as oc

oc.init(arch=oc.cpu, log_level="warn", debug=False)
FACTOR = 3
x = oc.field(oc.f32, shape=8, needs_grad=True)
loss = oc.field(oc.f32, shape=(), needs_grad=True)
IntArray = oc.types.ndarray(dtype=oc.i32, ndim=1)

@oc.func
def scaled(v):
    return v * FACTOR

@oc.kernel
def sum_squares():
    for i in x:
        loss[None] += scaled(x[i]) ** 2

@oc.kernel
def two_loops(a: IntArray, n: oc.template()):
    for i in a:
        a[i] = i + n
    for i in a:
        a[i] = a[i] * 2

@oc.kernel
def branches(a: IntArray, b: IntArray):
    with oc.stream_parallel():
        for i in a:
            a[i] += 1
    with oc.stream_parallel():
        for i in b:
            b[i] += 2

@oc.kernel
def tell(a: IntArray) -> oc.i32:
    total = 0
    for i in a:
        total += a[i]
    print("total", total)
    return total

@oc.kernel
def check(a: IntArray):
    for i in a:
        assert a[i] < 100, "too large"

x.from_numpy(np.arange(8, dtype=np.float32))
sum_squares()
loss.grad[None] = 1
sum_squares.grad()
print(loss[None], x.grad.to_numpy().tolist())
a, b = oc.ndarray(oc.i32, 8), oc.ndarray(oc.i32, 8)
two_loops(a, 5)
two_loops(b, 6)
branches(a, b)
print(a.to_numpy().tolist(), b.to_numpy().tolist(), tell(a))
oc.init(arch=oc.cpu, log_level="warn", debug=True)
a = oc.ndarray(oc.i32, 8)
a[3] = 1000
try:
    check(a)
except AssertionError as error:
    print("AssertionError", "too large" in str(error), "a[i] < 100" in str(error))
"""

RESULT = """\
1260.0 [0.0, 18.0, 36.0, 54.0, 72.0, 90.0, 108.0, 126.0]
total 144
[11, 13, 15, 17, 19, 21, 23, 25] [14, 16, 18, 20, 22, 24, 26, 28] 144
AssertionError True True
"""


def run(folder, program=PROGRAM, arguments=(), **environment):
    """Runs a program whose kernels are kept in a folder below this one."""
    path = Path(folder) / "program.py"
    path.write_text(program)
    environment = os.environ | {"OC_OFFLINE_CACHE_FILE_PATH": str(Path(folder) / "kept"), "OC_TIME": "1"} | environment
    return subprocess.run(
        [sys.executable, str(path), *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        env=environment,
        check=False,
    )


def found(done) -> int:
    """How many kernels of a program came from the disk."""
    assert done.returncode == 0, done.stderr
    return len(re.findall(r"\[Octants\] compiled .*, cache ", done.stderr))


def made(done) -> int:
    """How many kernels it compiled."""
    assert done.returncode == 0, done.stderr
    return len(re.findall(r"\[Octants\] compiled .*, LLVM ", done.stderr))


def entries(folder) -> list[Path]:
    return sorted(path for path in (Path(folder) / "kept").rglob("*") if len(path.name) == 64 and path.is_file())


def test_a_second_process_compiles_nothing(tmp_path):
    cold = run(tmp_path)
    assert cold.stdout == RESULT, cold.stderr
    assert made(cold) > 0 and found(cold) == 0
    files = entries(tmp_path)
    assert all(path.stat().st_mode & 0o77 == 0 for path in [*files, *(path.parent for path in files)])
    warm = run(tmp_path)
    assert warm.stdout == RESULT and made(warm) == 0 and found(warm) == made(cold)
    assert entries(tmp_path) == files
    # Elsewhere in the file, and in another file: what is told of places is still right.
    moved = run(tmp_path, program="# A line.\n\n" + PROGRAM)
    assert moved.stdout == RESULT and found(moved) > 0 and made(moved) > 0
    off = run(tmp_path, OC_OFFLINE_CACHE="0")
    assert off.stdout == RESULT and made(off) == made(cold)


EDITS = {
    "kernel": ("a[i] = i + n", "a[i] = i + n + 1"),
    "function": ("return v * FACTOR", "return v * FACTOR + 1"),
    "global": ("FACTOR = 3", "FACTOR = 4"),
    "template": ("two_loops(a, 5)", "two_loops(a, 7)"),
    "type": ("oc.field(oc.f32, shape=8", "oc.field(oc.f64, shape=8"),
    "layout": ("loss = oc.field(oc.f32, shape=()", "loss = oc.field(oc.f64, shape=()"),
    "option": ("debug=False", "fast_math=False"),
    "grouping": ("    with oc.stream_parallel():\n        for i in b:\n            b[i] += 2", "        for i in b:\n            b[i] += 2"),
}  # fmt: skip


@pytest.mark.parametrize("edit", EDITS)
def test_what_was_changed_is_compiled_anew(tmp_path, kept, edit):
    before, after = EDITS[edit]
    assert before in PROGRAM
    shutil.copytree(kept, tmp_path / "kept")
    program = PROGRAM.replace(before, after)
    changed = run(tmp_path, program)
    assert made(changed) > 0
    assert found(changed) > 0 or edit == "option"
    assert changed.stdout == run(tmp_path, program, OC_OFFLINE_CACHE="0").stdout


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder in which the program's kernels are."""
    folder = tmp_path_factory.mktemp("kept")
    assert run(folder).stdout == RESULT
    return folder / "kept"


def test_editing_one_loop_compiles_one_task(tmp_path):
    program = """
import octants as oc
oc.init(arch=oc.cpu, log_level="warn")
@oc.kernel
def k(a: oc.types.ndarray(dtype=oc.i32, ndim=1)):
    for i in a:
        a[i] = i
    for i in a:
        a[i] *= 2
    for i in a:
        a[i] += 3
a = oc.ndarray(oc.i32, 4)
k(a)
[one] = k.compile_statistics()
print(a.to_numpy().tolist(), one["tasks"], one["found_tasks"], one["found"])
"""
    assert run(tmp_path, program).stdout == "[3, 5, 7, 9] 3 0 False\n"
    assert run(tmp_path, program).stdout == "[3, 5, 7, 9] 3 3 True\n"
    assert run(tmp_path, program.replace("*= 2", "*= 5")).stdout == "[3, 8, 13, 18] 3 2 False\n"


def damage(path: Path, others: list[Path], kind: str) -> None:
    data = bytearray(path.read_bytes())
    if kind == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "flipped":
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        path.write_bytes(data)
    elif kind == "swapped":
        other = others[(others.index(path) + 1) % len(others)]
        theirs = other.read_bytes()
        other.write_bytes(data)
        path.write_bytes(theirs)
    elif kind == "removed":
        path.unlink()
    else:
        path.unlink()
        path.symlink_to("/dev/zero" if random.random() < 0.5 else "/nowhere")


@pytest.mark.parametrize("kind", ["cut", "empty", "flipped", "swapped", "removed", "linked"])
def test_damaged_files_cost_a_compilation(tmp_path, kept, kind):
    random.seed(kind)
    shutil.copytree(kept, tmp_path / "kept")
    files = entries(tmp_path)
    hit = files if kind == "flipped" else files[:: 2 if kind == "swapped" else 3]
    for path in hit:
        damage(path, files, kind)
    again = run(tmp_path)
    assert again.stdout == RESULT and made(again) > 0
    third = run(tmp_path)
    assert third.stdout == RESULT and made(third) == 0


def test_processes_that_are_killed_leave_nothing_that_is_wrong(tmp_path):
    random.seed(3)
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    environment = os.environ | {"OC_OFFLINE_CACHE_FILE_PATH": str(tmp_path / "kept")}
    for _ in range(12):
        started = subprocess.Popen(
            [sys.executable, path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
        )
        time.sleep(random.uniform(0.1, 1.0))
        started.send_signal(signal.SIGKILL)
        started.wait()
    assert run(tmp_path).stdout == RESULT
    command = [sys.executable, "-m", "octants", "cache", "verify", str(tmp_path / "kept")]
    verified = subprocess.run(command, capture_output=True, text=True, check=False)
    assert verified.returncode == 0 and "0 were damaged" in verified.stdout


def test_many_processes_start_at_once_and_compile_little_twice(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    environment = os.environ | {"OC_OFFLINE_CACHE_FILE_PATH": str(tmp_path / "kept"), "OC_TIME": "1"}
    started = [
        subprocess.Popen(
            [sys.executable, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        for _ in range(32)
    ]
    ended = []
    for process in started:
        out, errors = process.communicate(timeout=240)
        ended.append(subprocess.CompletedProcess([], process.returncode, out, errors))
    assert all(done.stdout == RESULT for done in ended)
    compiled, kernels = sum(made(done) for done in ended), made(ended[0]) + found(ended[0])
    assert kernels <= compiled <= 2 * kernels, f"{compiled} compilations of {kernels} kernels"


def limit_files():
    # Less than an entry of a kernel takes: as on a disk that is full.
    resource.setrlimit(resource.RLIMIT_FSIZE, (400, 400))


def test_a_full_disk_is_said_once(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    environment = os.environ | {"OC_OFFLINE_CACHE_FILE_PATH": str(tmp_path / "kept")}
    done = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, env=environment, preexec_fn=limit_files, check=False
    )
    assert done.stdout == RESULT
    assert done.stderr.count("not kept on disk") == 1 and "File too large" in done.stderr
    assert not entries(tmp_path)


def test_a_disk_that_fills_up_is_said_once(tmp_path):
    """A file system of 40 KiB: some entries fit, the next one does not."""
    kept = tmp_path / "kept"
    kept.mkdir(mode=0o700)
    options = f"size=40k,mode=0700,uid={os.geteuid()}"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "octants-test", str(kept)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        done = run(tmp_path)
        assert done.stdout == RESULT
        assert done.stderr.count("not kept on disk") == 1 and "No space left" in done.stderr
        assert entries(tmp_path), "what fitted is kept"
        again = run(tmp_path)
        assert again.stdout == RESULT and found(again) > 0
    finally:
        subprocess.run(["umount", str(kept)], check=True)


@pytest.mark.parametrize("years", [-60, 20])
def test_clocks_that_jump_change_nothing_but_what_is_cleaned_first(tmp_path, kept, years):
    shutil.copytree(kept, tmp_path / "kept")
    moment = time.time() + years * 365 * 86400
    files = [path for path in (tmp_path / "kept").rglob("*") if path.is_file()]
    for path in files:
        os.utime(path, (moment, moment))
    done = run(tmp_path)
    assert done.stdout == RESULT and made(done) == 0
    used = [path for path in entries(tmp_path) if abs(path.stat().st_mtime - time.time()) < 3600]
    assert len(used) == len(entries(tmp_path)), "each was used just now"


def test_versions_that_share_a_folder_do_not_see_each_other(tmp_path, kept):
    """Entries of another version have the same names here, and other contents."""
    shutil.copytree(kept, tmp_path / "kept")
    [own] = [path for path in (tmp_path / "kept").iterdir() if path.is_dir()]
    other = own.with_name("9-9-9-0123456789abcdef")
    shutil.copytree(own, other)
    for path in other.iterdir():
        path.write_bytes(b"code of another version")
    theirs = {path.name: path.read_bytes() for path in other.iterdir()}
    done = run(tmp_path)
    assert done.stdout == RESULT and made(done) == 0
    shutil.rmtree(own)
    done = run(tmp_path)
    assert done.stdout == RESULT and found(done) == 0
    assert {path.name: path.read_bytes() for path in other.iterdir()} == theirs


def prepare_world_writable(folder):
    folder.mkdir()
    folder.chmod(0o777)


def prepare_link(folder):
    (folder.parent / "elsewhere").mkdir()
    folder.symlink_to(folder.parent / "elsewhere")


def prepare_file(folder):
    folder.write_text("no folder")


def prepare_foreign(folder):
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    folder.mkdir()
    os.chown(folder, 12345, 12345)


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (prepare_world_writable, "can be written by other users"),
        (prepare_link, "is a symbolic link"),
        (prepare_file, "is no folder"),
        (prepare_foreign, "belongs to another user"),
    ],
)
def test_folders_that_are_not_trusted_are_not_used(tmp_path, prepare, words):
    prepare(tmp_path / "kept")
    done = run(tmp_path)
    assert done.stdout == RESULT and made(done) > 0
    assert done.stderr.count("not kept on disk") == 1 and words in done.stderr
    inside = tmp_path / "kept"
    assert not inside.is_dir() or not any(inside.iterdir())


@pytest.mark.parametrize("folder", ["/proc/nowhere/kept", "/dev/null/kept"])
def test_a_folder_that_cannot_be_made_is_said_once(tmp_path, folder):
    done = run(tmp_path, OC_OFFLINE_CACHE_FILE_PATH=folder)
    assert done.stdout == RESULT and made(done) > 0
    assert done.stderr.count("not kept on disk") == 1


def test_without_an_option_the_users_own_folder_is_used(tmp_path):
    environment = {"OC_OFFLINE_CACHE_FILE_PATH": "", "HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": ""}
    assert run(tmp_path, **environment).stdout == RESULT
    assert any((tmp_path / "home" / ".cache" / "octants").iterdir())
    environment["XDG_CACHE_HOME"] = str(tmp_path / "xdg")
    assert made(run(tmp_path, **environment)) > 0
    assert any((tmp_path / "xdg" / "octants").iterdir())
    environment |= {"HOME": "/proc/nowhere", "XDG_CACHE_HOME": ""}
    assert run(tmp_path, **environment).stdout == RESULT


def test_the_size_is_bounded(tmp_path):
    program = """
import octants as oc, time
oc.init(arch=oc.cpu, log_level="warn", offline_cache_max_size_of_files=20000)
@oc.kernel
def k(n: oc.template()) -> oc.i32:
    return n
for n in range(30):
    assert k(n) == n
time.sleep(0.5)
"""
    assert made(run(tmp_path, program)) > 20
    assert sum(path.stat().st_size for path in entries(tmp_path)) < 40_000


def test_options_that_make_no_sense():
    import octants as oc

    with pytest.raises(ValueError, match="never, version, lru and fifo"):
        oc.init(offline_cache_cleaning_policy="sometimes")
    with pytest.raises(ValueError, match="from 0 to 1"):
        oc.init(offline_cache_cleaning_factor=2.0)


def test_the_command_shows_verifies_and_cleans(tmp_path, kept):
    folder = tmp_path / "kept"
    shutil.copytree(kept, folder)

    def command(*arguments):
        full = [sys.executable, "-m", "octants", "cache", *arguments]
        return subprocess.run(full, capture_output=True, text=True, check=False)

    count = len(entries(tmp_path))
    shown = command("info", str(folder))
    assert f"{count} entries" in shown.stdout and "(this version)" in shown.stdout
    assert command("verify", str(folder)).returncode == 0
    damage(entries(tmp_path)[0], [], "flipped")
    verified = command("verify", str(folder))
    assert verified.returncode == 1 and f"{count - 1} entries are whole, 1 were damaged" in verified.stdout
    (folder / "notes.txt").write_text("of the user")
    assert f"removed {count - 1} files" in command("clean", str(folder)).stdout
    assert (folder / "notes.txt").exists() and not entries(tmp_path)
    assert "nothing is kept" in command("info", str(tmp_path / "nowhere")).stdout
    assert command("burn").returncode == 2


def test_branches_from_the_disk_run_side_by_side(tmp_path):
    program = """
import threading, time
import numpy as np
import octants as oc
oc.init(arch=oc.cpu, cpu_max_num_threads=4, log_level="warn")
Flags = oc.types.ndarray(dtype=oc.i32, ndim=1)
@oc.kernel
def meet(a: Flags, b: Flags, patience: oc.i32):
    with oc.stream_parallel():
        for i in range(1):
            a[0] = 1
            n = 0
            while oc.volatile_load(b[0]) == 0 and n < patience:
                n += 1
            a[1] = n < patience
    with oc.stream_parallel():
        for i in range(1):
            b[0] = 1
            n = 0
            while oc.volatile_load(a[0]) == 0 and n < patience:
                n += 1
            b[1] = n < patience
a, b = np.zeros(2, np.int32), np.zeros(2, np.int32)
meet(a, b, 2_000_000_000)
print(a.tolist(), b.tolist(), meet.compile_statistics()[0]["found"])
"""
    assert run(tmp_path, program).stdout == "[1, 1] [1, 1] False\n"
    assert run(tmp_path, program).stdout == "[1, 1] [1, 1] True\n"


GRADIENT = """
import sys
import numpy as np
import octants as oc
oc.init(arch=oc.cpu, log_level="warn")
x = oc.field(oc.f64, shape=8, needs_grad=True)
loss = oc.field(oc.f64, shape=(), needs_grad=True)
@oc.kernel
def iterate(n: oc.i32):
    for i in x:
        v = x[i]
        for k in range(n + i):
            if v > 0.5:
                v = oc.sin(v) * 1.1
            else:
                v = v * v + 0.25
        loss[None] += v
x.from_numpy(np.linspace(0.1, 0.9, 8))
loss.grad[None] = 1
iterate(int(sys.argv[1]))
iterate.grad(int(sys.argv[1]))
print(loss[None], x.grad.to_numpy().tolist(), iterate.grad_plan(int(sys.argv[1])))
"""


def test_gradients_from_the_disk_are_those_of_the_first_run(tmp_path):
    """The derivative that keeps values of its loops has the same plan and gives the same bits, for any length of the loops."""

    def gradient(steps, **environment):
        done = run(tmp_path, GRADIENT, [str(steps)], **environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    cold = gradient(5)
    files = entries(tmp_path)
    assert gradient(5) == cold and gradient(50) == gradient(50, OC_OFFLINE_CACHE="0")
    assert entries(tmp_path) == files, "nothing was compiled for other lengths"
