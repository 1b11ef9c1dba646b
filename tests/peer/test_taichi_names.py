"""Names and forms of Taichi that Quadrants has dropped, for programs that run as Taichi's."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import octants as oc

pytestmark = pytest.mark.no_device


def run(tmp_path, text, peer="taichi"):
    (tmp_path / "program.py").write_text(textwrap.dedent(text))
    command = [sys.executable, "-m", "octants", "run", "--as", peer, "program.py"]
    return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)


PROGRAM = """
import warnings
import numpy as np
import taichi as ti

with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    ti.init(arch=ti.cpu, packed=True, dynamic_index=True, excepthook=True, use_unified_memory=False, kernel_profiler=True, log_level=ti.ERROR)
print([str(one.message) for one in told])

x = ti.var(ti.f32, shape=(4, 3))
late = ti.var(dt=ti.i32)
ti.root.dense(ti.i, 5).place(late)
v = ti.Vector(2, dt=ti.f32, shape=4)
m = ti.Matrix(2, 3, dt=ti.i32, shape=(2, 2))
unplaced = ti.Vector(3, dt=ti.f32)
ti.root.dense(ti.i, 2).place(unplaced)
loss = ti.var(ti.f32, shape=(), needs_grad=True)
w = ti.Vector(2, ti.f32, shape=4, needs_grad=True)

@ti.kernel
def fill(a: ti.ext_arr(), b: ti.any_arr()):
    ti.block_dim(32)
    for i, j in x:
        x[i, j] = ti.pi * i + j
    for i in v:
        v[i] = ti.Vector([i, 2 * i])
        w[i] = ti.Vector([i, i + 1])
    for i in range(3):
        a[i] = b[i] + 1

@ti.kernel
def total():
    for i in w:
        loss[None] += w[i].norm_sqr()

a, b = np.zeros(3, np.float32), np.arange(3, dtype=np.float32)
fill(a, b)
with ti.Tape(loss):
    total()
print(a.tolist(), late.shape, m.shape, m.n, m.m, unplaced.n, abs(x[2, 1] - 2 * ti.pi - 1) < 1e-6, v[3].to_list(), w.grad[2].to_list())
print(hex(ti.rgb_to_hex([1.0, 0.5, 0.0])), ti.hex_to_rgb(0xFF0000), ti.rgb_to_hex(np.ones((3, 2))).tolist())
print(ti.Vector([1, 2], ti.f32).dt, ti.Vector([1, 2], dt=ti.i32).dt, ti.Matrix([[1, 2]], ti.f64).dt)
ti.kernel_profiler_print()
ti.kernel_profiler_clear()
print(ti.tools.imresize(np.arange(16).reshape(4, 4), 2).tolist(), ti.imresize is ti.tools.imresize)
"""


def test_programs_find_the_names_of_taichi(tmp_path):
    done = run(tmp_path, PROGRAM)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == (
        "['options dynamic_index, excepthook, packed and use_unified_memory of Taichi have no effect in Octants']"
    )
    assert lines[1] == "[1.0, 2.0, 3.0] (5,) (2, 2) 2 3 3 True [3.0, 6.0] [4.0, 6.0]"
    assert lines[2] == "0xff7f00 (1.0, 0.0, 0.0) [16777215, 16777215]"
    assert lines[3] == "f32 i32 f64"
    assert "fill" in done.stdout and lines[-1] == "[[0, 2], [8, 10]] True"


BLOCK_DIM = """
import warnings
import taichi as ti

with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    ti.init(arch=ti.cpu, packed=True, print_ir=True)
    x = ti.var(ti.f32, shape=100)

    @ti.kernel
    def fill():
        ti.block_dim(64)
        for i in x:
            x[i] = i

    fill()
print([(one.filename == __file__, one.lineno, str(one.message)[:7]) for one in told])
"""


def test_block_dim_is_an_option_of_the_loop_that_follows(tmp_path):
    done = run(tmp_path, BLOCK_DIM)
    assert done.returncode == 0, done.stderr
    assert "over layout0 block_dim 64" in done.stdout, done.stdout


def test_options_without_effect_are_told_at_the_line_of_the_program(tmp_path):
    done = run(tmp_path, BLOCK_DIM)
    assert done.stdout.splitlines()[-1] == "[(True, 7, 'option ')]"


@pytest.mark.parametrize("text, says", [
    ("import quadrants as qd; qd.var", "module 'octants' has no attribute 'var'"),
    ("import quadrants as qd; qd.init(arch=qd.cpu, packed=True)", "oc.init() has no option packed"),
    ("import quadrants as qd; qd.init(arch=qd.cpu); qd.Vector(2, dt=qd.f32, shape=3)", "TypeError"),
])  # fmt: skip
def test_other_programs_do_not(tmp_path, text, says):
    done = run(tmp_path, text, "quadrants")
    assert done.returncode == 1 and says in done.stderr


def test_wrong_forms_of_vectors_are_told_as_ever(tmp_path):
    for wrong in (
        "ti.Vector(2)",
        "ti.Vector([1, 2], 3)",
        "ti.Matrix(2, dt=ti.f32)",
        "ti.Vector([1], dt=ti.f32, shape=3)",
    ):
        done = run(tmp_path, f"import taichi as ti\nti.init(arch=ti.cpu)\n{wrong}\n")
        assert done.returncode == 1 and "Error" in done.stderr, wrong
    done = run(tmp_path, "import taichi as ti\nti.init(arch=ti.cpu, pakced=True)")
    assert "has no option pakced" in done.stderr


def picture():
    rows = np.zeros((5, 3, 3), np.uint8)
    rows[..., 0] = np.arange(5)[:, None] * 50
    rows[..., 2] = np.arange(3) * 100
    return rows


def test_pictures_go_to_files_and_back(tmp_path):
    if not any(has(name) for name in ("PIL", "imageio")):
        pytest.skip("neither Pillow nor imageio is installed")
    path = tmp_path / "picture.png"
    oc.tools.imwrite(picture(), path)
    assert (oc.tools.imread(path) == picture()).all()
    assert oc.tools.imread(path, 1).shape == (5, 3, 1) and oc.tools.imread(path, 4).shape == (5, 3, 4)
    field = oc.field(oc.f32, (5, 3))
    field.from_numpy(np.linspace(-1, 2, 15, dtype=np.float32).reshape(5, 3))
    oc.tools.imwrite(field, path)
    assert oc.tools.imread(path)[0, 0, 0] == 0 and oc.tools.imread(path)[4, 2, 0] == 255
    manager = oc.tools.VideoManager(tmp_path / "video")
    manager.write_frames([picture(), picture()])
    assert sorted(p.name for p in (tmp_path / "video" / "frames").iterdir()) == ["000000.png", "000001.png"]
    manager.clean_frames()
    assert not list((tmp_path / "video" / "frames").iterdir())


def has(name):
    import importlib.util

    return importlib.util.find_spec(name) is not None


def test_pixels_are_the_nearest_bytes():
    from octants.tools.image import to_bytes

    down = to_bytes(picture())
    assert down.shape == (3, 5, 3) and (down[0, :, 2] == 200).all() and (down[:, 4, 0] == 200).all()
    reals = to_bytes(np.array([[-1.0, 0.5], [1.0, np.nan]]))[..., 0]
    assert reals.tolist() == [[128, 0], [0, 255]]
    assert to_bytes(np.array([[0, 2**16 - 1]], np.uint16))[..., 0].tolist() == [[255], [0]]
    for wrong in (np.zeros(3), np.zeros((2, 2, 2), np.uint8), np.zeros((2, 2), np.int32)):
        with pytest.raises(ValueError, match="a picture"):
            to_bytes(wrong)
    with pytest.raises(ValueError, match="a pixel at least"):
        oc.tools.imresize(picture(), 0)
    assert oc.tools.imresize(picture(), 10, 6).shape == (10, 6, 3)


def test_missing_packages_are_named(monkeypatch, tmp_path):
    for name in ("PIL", "imageio", "imageio.v2"):
        monkeypatch.setitem(sys.modules, name, None)
    for call in (lambda: oc.tools.imwrite(picture(), tmp_path / "a.png"), lambda: oc.tools.imread(tmp_path / "a.png")):
        with pytest.raises(
            ModuleNotFoundError, match="needs Pillow or imageio, and neither is installed: pip install pillow"
        ):
            call()
    manager = oc.tools.VideoManager(tmp_path / "video")
    with pytest.raises(RuntimeError, match="call write_frame first"):
        manager.make_video()
    manager.frame_fns.append("000000.png")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RuntimeError, match="needs the program ffmpeg, which is not there"):
        manager.make_video()
