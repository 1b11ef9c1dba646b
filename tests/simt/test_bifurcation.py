"""The program of `examples/` whose blocks count histograms."""

import importlib
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("examples_on_path")


@pytest.fixture
def program(arch, examples_on_path):
    """The program, loaded anew, with points that settle for a few steps only."""
    sys.modules.pop("bifurcation", None)
    module = importlib.import_module("bifurcation")
    module.UNSEEN = 60
    return module


def test_points_of_a_stable_r_end_in_one_place(program):
    size, steps = 24, 8
    image, counts = program.diagram(size, steps)
    assert (counts.sum(axis=0) == program.THREADS * steps).all(), "no point is lost"
    r = program.FIRST + (program.LAST - program.FIRST) * (0.5 / size)
    end = int((1 - (1 - 1 / r)) * size)
    assert counts[end, 0] == counts[:, 0].sum(), "x = 1 - 1/r attracts every point"
    brightest = image.astype(int).sum(axis=2).argmax(axis=0)
    assert (counts[brightest, np.arange(size)] == counts.max(axis=0)).all()


def test_it_writes_its_picture(program, arch, request, tmp_path):
    if arch == "reference":
        pytest.skip("a thousand steps of each point take the interpreter minutes")
    command = [sys.executable, str(request.config.rootpath / "examples" / "bifurcation.py")]
    options = ["--size", "16", "--steps", "10", "--out", str(tmp_path), "--arch", arch]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "bifurcation.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
