"""Where blocks of threads run so far, in one place."""

import pytest

#: Devices whose code for blocks is built. Tests are written for all of them.
BUILT = ("reference",)


@pytest.fixture
def arch(arch):
    """Runs a test once on every device that runs blocks; the device's name."""
    if arch not in BUILT:
        pytest.skip(f"blocks do not run on {arch} yet")
    return arch
