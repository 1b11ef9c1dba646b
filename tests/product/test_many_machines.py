"""The examples for several machines, with several processes of this one."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

pytestmark = pytest.mark.no_device


def run(program, *options):
    done = subprocess.run([sys.executable, EXAMPLES / program, *options], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout


def diffused(size, steps):
    """The plate of halo_exchange.py, in numpy."""
    plate = np.zeros((size + 2, size + 2), np.float32)
    plate[::64] = 1
    for _ in range(steps):
        around = plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:]
        plate[1:-1, 1:-1] += np.float32(0.2) * (around - 4 * plate[1:-1, 1:-1])
    return plate[1:-1]


def test_a_plate_divided_among_processes(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    for processes in (1, 3):
        out = tmp_path / f"{processes}.npy"
        told = run(
            "halo_exchange.py", "--size", "100", "--steps", "20", "--processes", str(processes), "--out", str(out)
        )
        assert f"{processes} processes, 100 x 100 cells" in told
        np.testing.assert_allclose(np.load(out), diffused(100, 20), atol=1e-5)


def test_arrays_and_tensors_of_a_slab_share_memory():
    pytest.importorskip("torch", reason="torch is not installed")
    program = (
        "import octants as oc, halo_exchange as example\n"
        "oc.init(arch=oc.cpu, log_level='error')\n"
        "slab = example.Slab(8, 0, 1)\n"
        "for array, tensor in zip(slab.arrays, slab.tensors):\n"
        "    assert array.__array_interface__['data'][0] == tensor.data_ptr()\n"
        "    assert tensor[3].is_contiguous()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=EXAMPLES)


def test_a_sweep_on_workers(tmp_path):
    pytest.importorskip("distributed", reason="distributed is not installed")
    out = tmp_path / "sweep.png"
    told = run("parameter_sweep.py", "--size", "32", "--steps", "50", "--workers", "2", "--out", str(out))
    assert told.startswith("16 simulations") and out.stat().st_size > 500
    program = (
        "import numpy as np, parameter_sweep as example\n"
        "from distributed import Client, LocalCluster\n"
        "if __name__ == '__main__':\n"
        "    with Client(LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)) as client:\n"
        "        found = example.sweep(client, 32, 50)\n"
        "    for i, feed in enumerate(example.FEEDS):\n"
        "        for j, kill in enumerate(example.KILLS):\n"
        "            np.testing.assert_array_equal(found[i, j], example.pattern(feed, kill, 32, 50))\n"
        "    assert np.ptp(found, axis=(2, 3)).min() > 0.1\n"
    )
    file = tmp_path / "compare.py"
    file.write_text(f"import sys; sys.path.insert(0, {str(EXAMPLES)!r})\n{program}")
    subprocess.run([sys.executable, file], check=True, timeout=240)
