"""Shared by all tests: a fresh session per test, and the devices that a behaviour is checked on."""

import pytest

import octants as oc

ARCHES = {"cpu": oc.cpu, "reference": oc.reference}


@pytest.fixture(autouse=True)
def fresh_session():
    oc.init(arch=oc.cpu, log_level="error")
    yield
    oc.reset()


@pytest.fixture(params=sorted(ARCHES))
def arch(request):
    """Runs a test once on every device."""
    oc.init(arch=ARCHES[request.param], log_level="error")
    return request.param
