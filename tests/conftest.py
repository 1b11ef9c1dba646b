"""Shared by all tests: a fresh session per test, and the devices that a behaviour is checked on.

Modules that the tests of one folder share lie in it, those that several folders share lie here. Pytest puts this folder and that of a test
on the path, so both are imported by their name; names of files differ across folders.

A test that asks for ``arch`` runs once on every device, any other on the CPU and on the GPU, if there is one. Markers narrow or widen
that:

* ``no_device``: it is about no device (diagnostics, documents, processes of its own), and runs once.
* ``host_devices(reason)``: only devices that compute with the host's threads and memory have what it is about.
* ``host_access``: it is about what the host does with a device's memory, so it also runs on ``remote``, the interpreter behind memory that
  the host cannot see.
* ``device_memory``: only devices with memory of their own have what it is about: ``remote`` and ``cuda``.
* ``cuda_only``: it is about NVIDIA's GPUs alone.
* ``alone``: what it measures or does to the machine needs all cores: it runs when the others are done.
* ``sanitizer_core``: a small program for each part of a device's code, which compute-sanitizer runs, too.

``--devices cuda`` runs what belongs to that device alone, and ``--needing torch`` what is skipped where there is no torch. ``--examples 1000`` checks properties on that
many random examples. Where a device that a test is about cannot be opened, it is skipped with the
reason.
"""

from __future__ import annotations

import atexit
import inspect
import os
import re
import shutil
import tempfile

import pytest
from devices import DEVICES, missing

import octants as oc

# Kernels of tests are kept apart from the user's, and are new in each run; processes that tests start share them.
if "OC_OFFLINE_CACHE_FILE_PATH" not in os.environ:
    os.environ["OC_OFFLINE_CACHE_FILE_PATH"] = tempfile.mkdtemp(prefix="octants-tests-")
    atexit.register(shutil.rmtree, os.environ["OC_OFFLINE_CACHE_FILE_PATH"], ignore_errors=True)


def pytest_addoption(parser):
    parser.addoption("--devices", metavar="A,B", help=f"run the tests of these devices alone ({', '.join(DEVICES)})")
    parser.addoption(
        "--examples", type=int, metavar="N", help="run N random examples of each property, not a few fixed ones"
    )
    parser.addoption("--needing", metavar="MODULE", help="run the tests alone that ask for this module by importorskip")


def pytest_configure(config):
    config.addinivalue_line("markers", "no_device: about no device: runs once")
    config.addinivalue_line("markers", "host_devices(reason): about devices with the host's threads and memory")
    config.addinivalue_line("markers", "host_access: about the host's access to a device's memory: also on `remote`")
    config.addinivalue_line("markers", "device_memory: about devices with memory of their own")
    config.addinivalue_line("markers", "cuda_only: about NVIDIA's GPUs")
    config.addinivalue_line("markers", "alone: needs the machine for itself")
    config.addinivalue_line("markers", "sanitizer_core: run by compute-sanitizer, too")
    named = config.getoption("--devices")
    config.named_devices = None if named is None else tuple(named.split(","))
    if unknown := [device for device in config.named_devices or () if device not in DEVICES]:
        raise pytest.UsageError(f"--devices: {', '.join(unknown)}: not one of {', '.join(DEVICES)}")


def pytest_report_header(config):
    named = f"{', '.join(config.named_devices)} of " if config.named_devices else ""
    told = [device if missing(device) is None else f"{device} ({missing(device)})" for device in DEVICES]
    return f"devices: {named}{', '.join(told)}"


def stamps(definition) -> list[str]:
    """The devices that a test runs on. Those that only add to the CPU's run are left out where they cannot be opened."""
    if definition.get_closest_marker("no_device"):
        return ["cpu"]
    if definition.get_closest_marker("cuda_only"):
        return ["cuda"]
    if definition.get_closest_marker("device_memory"):
        return ["remote", "cuda"]
    devices = ["cpu"]
    if {"arch", "device"} & set(definition.fixturenames):
        devices.append("reference")
    if definition.get_closest_marker("host_devices"):
        return devices
    if definition.get_closest_marker("host_access"):
        devices.append("remote")
    devices.append("cuda")
    named = definition.config.named_devices or ()
    return [device for device in devices if device in named or missing(device) is None]


def pytest_generate_tests(metafunc):
    devices = stamps(metafunc.definition)
    if "arch" in metafunc.fixturenames:
        metafunc.parametrize("arch", devices, indirect=True)
    elif "device" not in metafunc.fixturenames and devices != ["cpu"]:
        metafunc.parametrize("fresh_session", devices, indirect=True)


def device_of(item) -> str:
    """The device that a stamped test runs on. A stamp may say more after a comma."""
    params = item.callspec.params if hasattr(item, "callspec") else {}
    stamp = params.get("arch") or params.get("device") or params.get("fresh_session") or "cpu"
    return stamp.partition(",")[0]


def needs(item, module: str) -> bool:
    """Whether a test, or its file for all of its tests, asks for a module by ``importorskip``."""
    asking = rf'importorskip\("{module}"'
    if re.search(rf"^\S.*{asking}", inspect.getsource(item.module), re.MULTILINE):
        return True
    return re.search(asking, inspect.getsource(item.function)) is not None


def pytest_collection_modifyitems(config, items):
    devices, module = config.named_devices, config.getoption("--needing")
    left_out = [
        item for item in items if (devices and device_of(item) not in devices) or (module and not needs(item, module))
    ]
    if left_out:
        items[:] = [item for item in items if item not in set(left_out)]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(autouse=True)
def fresh_session(request):
    """A session on the test's device, by name. ``oc.init(arch=oc.cfg.arch, ...)`` begins another one with other options."""
    device = device_of(request.node)
    if reason := missing(device):
        pytest.skip(reason)
    oc.init(arch=getattr(oc, device), log_level="error")
    yield device
    oc.reset()


@pytest.fixture
def arch(fresh_session):
    """Runs a test once on every device; the device's name."""
    return fresh_session


@pytest.fixture(params=["unchecked", "debug"])
def mode(arch, request):
    """Every device, with and without checks."""
    oc.init(arch=getattr(oc, arch), debug=request.param == "debug", log_level="error")


@pytest.fixture
def examples_on_path(request, monkeypatch):
    """Programs of `examples/` import each other by name."""
    monkeypatch.syspath_prepend(str(request.config.rootpath / "examples"))
