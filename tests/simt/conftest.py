"""Where blocks of threads run so far, in one place."""

import pytest

import octants as oc

#: Devices whose code for blocks is built. Tests are written for all of them.
BUILT = ("reference", "cpu", "cuda")


@pytest.fixture
def arch(arch):
    """Runs a test once on every device that runs blocks; the device's name."""
    if arch not in BUILT:
        pytest.skip(f"blocks do not run on {arch} yet")
    return arch


#: Devices that report misuse which is only seen while a block runs: a barrier that lanes miss, a race, an exchange in divergent flow.
REPORTING = ("reference", "cpu")


@pytest.fixture
def reporting(arch):
    """Runs a test once on every device that reports what blocks do wrong, with ``debug=True``; the interpreter does so in any case."""
    if arch not in REPORTING:
        pytest.skip(f"{arch} does not report what blocks do wrong")
    oc.init(arch=getattr(oc, arch), debug=True, log_level="error")
    return arch
