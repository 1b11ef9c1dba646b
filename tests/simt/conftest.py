"""Where blocks of threads run so far, in one place."""

import pytest

#: Devices whose code for blocks is built. Tests are written for all of them.
BUILT = ("reference", "cpu", "cuda")


@pytest.fixture
def arch(arch):
    """Runs a test once on every device that runs blocks; the device's name."""
    if arch not in BUILT:
        pytest.skip(f"blocks do not run on {arch} yet")
    return arch


#: Devices that report misuse which is only seen while a block runs: a barrier that lanes miss, a race, an exchange in divergent flow.
REPORTING = ("reference",)


@pytest.fixture
def reporting(arch):
    """Runs a test once on every device that reports what blocks do wrong."""
    if arch not in REPORTING:
        pytest.skip(f"{arch} does not report what blocks do wrong")
    return arch


#: Whether kernels may write `t[:] = arr[r0:r1, c0:c1]`, `arr[...] = t`, `arr[r0:r1, c]` and `t -= oc.outer(a, b)`.
SLICES = False


@pytest.fixture
def slices(arch):
    """Runs a test once on every device for which tiles are loaded and stored by slices."""
    if not SLICES:
        pytest.skip("slices of arrays are not loaded into tiles yet")
    return arch
