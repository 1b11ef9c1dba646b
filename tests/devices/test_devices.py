"""Which device a session gets: lists, fallback, the environment, and what is said where there is no GPU."""

import os
import subprocess
import sys
import textwrap

import pytest

import octants as oc

pytestmark = pytest.mark.no_device


def run(program: str, **environment) -> subprocess.CompletedProcess:
    env = {k: v for k, v in os.environ.items() if not k.startswith("OC_")} | environment
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, env=env
    )


@pytest.fixture
def without_a_gpu(monkeypatch):
    """As on a machine without one: the driver, if there is one, shows no device."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


def test_names_of_devices():
    assert oc.gpu == [oc.cuda, oc.metal, oc.vulkan, oc.amdgpu]
    assert [device.name for device in oc.gpu] == ["cuda", "metal", "vulkan", "amdgpu"]
    assert repr(oc.cuda) == "oc.cuda"


def test_the_fallback_says_in_one_line_why(capfd):
    oc.init(arch=oc.metal)
    assert oc.cfg.arch is oc.cpu
    told = capfd.readouterr()
    assert told.err.count("\n") == 1 and "Using the CPU" in told.err and "metal" in told.err
    assert told.out == "[Octants] Starting on arch=cpu\n"
    # It is said each time, and not where warnings are not wanted.
    oc.init(arch=oc.metal, log_level="warn")
    assert "metal" in capfd.readouterr().err
    oc.init(arch=oc.metal, log_level="error")
    assert capfd.readouterr().err == ""


def test_without_fallback_a_missing_device_is_an_error():
    with pytest.raises(oc.OctantsDeviceUnavailable, match="metal: not supported by this version of Octants"):
        oc.init(arch=oc.metal, enable_fallback=False)
    with pytest.raises(RuntimeError, match="metal, vulkan: not supported"):
        oc.init(arch=[oc.metal, oc.vulkan], enable_fallback=False)
    with pytest.raises(RuntimeError, match="empty"):
        oc.init(arch=[], enable_fallback=False)
    # The session before it, or a new one, works.
    oc.init(arch=oc.cpu, log_level="error")
    x = oc.ndarray(oc.i32, 2)
    x.fill(3)
    assert x[1] == 3


def test_the_first_device_of_a_list_that_is_there_is_taken():
    oc.init(arch=[oc.metal, oc.reference, oc.cpu], log_level="error", enable_fallback=False)
    assert oc.cfg.arch is oc.reference
    oc.init(arch=(oc.vulkan, oc.cpu), log_level="error", enable_fallback=False)
    assert oc.cfg.arch is oc.cpu


def test_a_wrong_arch_is_refused():
    for wrong in ("cpu", 1, [oc.cpu, "cuda"]):
        with pytest.raises(TypeError, match="arch is a device"):
            oc.init(arch=wrong)


def test_without_a_gpu_cuda_says_what_is_missing(without_a_gpu):
    # In a process of its own: a driver reads the environment once.
    done = run(
        """
        import octants as oc
        try:
            oc.init(arch=oc.cuda, enable_fallback=False)
        except RuntimeError as error:
            print(type(error).__name__, error)
        oc.init(arch=oc.gpu)
        print(oc.cfg.arch)
        """
    )
    assert done.returncode == 0, done.stderr
    refused, started, used = done.stdout.splitlines()
    assert refused.startswith("OctantsDeviceUnavailable no device is available: cuda: ")
    assert started == "[Octants] Starting on arch=cpu" and used == "oc.cpu"
    assert done.stderr.count("\n") == 1 and "cuda" in done.stderr and "metal, vulkan, amdgpu: " in done.stderr


def test_the_environment_names_a_device():
    program = "import octants as oc; oc.init(log_level='error'); print(oc.cfg.arch, oc.cfg.device_id)"
    assert run(program, OC_ARCH="reference").stdout == "oc.reference 0\n"
    assert run(program, OC_ARCH="gpu", OC_ENABLE_CUDA="0").stdout == "oc.cpu 0\n"
    asked = program.replace("init(", "init(arch=oc.cpu, ")
    assert run(asked, OC_ARCH="reference").stdout == "oc.cpu 0\n"
    refused = run(program, OC_ARCH="warp")
    assert "ValueError" in refused.stderr and "OC_ARCH='warp' is no device" in refused.stderr


def test_the_environment_hides_a_device(monkeypatch):
    monkeypatch.setenv("OC_ENABLE_REFERENCE", "0")
    with pytest.raises(RuntimeError, match="reference: hidden by OC_ENABLE_REFERENCE=0"):
        oc.init(arch=oc.reference, enable_fallback=False)
    monkeypatch.setenv("OC_ENABLE_REFERENCE", "1")
    oc.init(arch=oc.reference, enable_fallback=False, log_level="error")
    monkeypatch.setenv("OC_ENABLE_REFERENCE", "yes")
    with pytest.raises(ValueError, match="must be 0 or 1"):
        oc.init(arch=oc.reference)


def test_which_of_several_devices(monkeypatch):
    oc.init(arch=oc.cpu, log_level="error")
    assert oc.cfg.device_id == 0
    monkeypatch.setenv("OC_VISIBLE_DEVICE", "2")
    oc.init(arch=oc.cpu, log_level="error")
    assert oc.cfg.device_id == 2
    oc.init(arch=oc.cpu, log_level="error", device_id=1)
    assert oc.cfg.device_id == 1
    monkeypatch.setenv("OC_VISIBLE_DEVICE", "first")
    with pytest.raises(ValueError, match="OC_VISIBLE_DEVICE"):
        oc.init(arch=oc.cpu, log_level="error")
    with pytest.raises(ValueError, match="negative"):
        oc.init(arch=oc.cpu, log_level="error", device_id=-1)


def test_options_of_device_memory_are_accepted():
    oc.init(arch=oc.cpu, log_level="error", device_memory_GB=2, device_memory_fraction=0.5, cuda_stack_limit=4096)
    assert oc.cfg.device_memory_GB == 2 and oc.cfg.device_memory_fraction == 0.5
