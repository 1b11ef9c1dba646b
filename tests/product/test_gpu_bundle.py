"""What runs on a machine with a GPU runs here too, on the CPU: the bundle's runner, the benchmarks' tables."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.no_device

ROOT = Path(__file__).resolve().parents[2]


def test_the_runner_keeps_what_each_part_found(tmp_path):
    parts = [
        "tests=test_structs.py",
        "generator=20",
        "schedules=20",
        "gradients=10",
        "bench=compile_saxpy",
        "simt=copy",
        "sanitizer",
    ]
    command = [sys.executable, ROOT / "scripts" / "run_gpu.py", tmp_path, *parts, "--device", "cpu", "--jobs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "gpu.json").read_text())["parts"]
    assert found["tests"]["passed"] >= 9 and found["tests"]["failed"] == 0
    assert "20 agree, 0 do not" in found["generator"]["summary"]
    assert "20 schedules on cpu" in found["schedules"]["summary"] and found["schedules"]["status"] == 0
    assert "agrees 10, kink 0, refused 0, disagrees 0" in found["gradients"]["summary"]
    assert found["gradients"]["status"] == 0
    bench = json.loads((tmp_path / "bench.json").read_text())
    assert bench["figures"][0]["value"]["octants"] > 0 and not bench["figures"][0]["failures"]
    simt = json.loads((tmp_path / "simt.json").read_text())["rows"]["copy"]
    assert simt["value"]["octants"] > 0 and not simt["failures"]
    assert "status" in found["sanitizer"] or "memcheck" in found["sanitizer"]
    text = (tmp_path / "gpu.txt").read_text()
    assert all(f"== {part.split('=')[0]} (" in text for part in parts)


def test_the_runner_ends_a_part_by_its_limit(tmp_path):
    command = [sys.executable, ROOT / "scripts" / "run_gpu.py", tmp_path, "tests=test_structs.py", "--device", "cpu"]
    done = subprocess.run([*command, "--minutes", "tests=0"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "test_structs.py: no end in time" in done.stdout


def test_a_missing_device_fails_at_once(tmp_path):
    command = [sys.executable, ROOT / "scripts" / "run_gpu.py", tmp_path, "tests=test_structs.py", "--device", "metal"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "metal: not supported" in done.stdout


def test_tables_of_an_earlier_run(tmp_path):
    figure = {"name": "fill", "title": "fill", "unit": "GB/s", "more_is_better": True, "failures": {}}
    figure |= {"value": {"octants": 4500.0}, "before": {"quadrants": 3000.0}, "target": "≥ 4000", "reached": True}
    document = {"machine": {"cpu": "?"}, "gpu": "NVIDIA H200", "date": "2026-01-01", "size": "gpu", "missing": {}}
    document |= {"systems": {"octants": "0.1.0"}, "figures": [figure]}
    (tmp_path / "bench.json").write_text(json.dumps(document))
    command = [sys.executable, ROOT / "benches" / "gpu.py", "--table", tmp_path / "bench.json", "--out", tmp_path]
    subprocess.run(command, check=True, timeout=60, capture_output=True)
    row = (tmp_path / "gpu.md").read_text().splitlines()[-1]
    assert row == "| fill | GB/s | 4500 | 3000 | 1.50× | ≥ 4000 | yes |"
    assert "NVIDIA H200" in (tmp_path / "gpu.txt").read_text()
