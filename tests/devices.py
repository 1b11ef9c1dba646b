"""The devices that tests run on, and which of them this machine has."""

from __future__ import annotations

import functools

import octants as oc
from octants._octants import Runtime
from octants._session import options

#: In the order that a test runs on them.
DEVICES = ("cpu", "reference", "remote", "cuda")

#: Those that interpret each operation, for which large loops take too long.
INTERPRETED = ("reference", "remote")


@functools.cache
def missing(device: str) -> str | None:
    """Why a device cannot be opened; decided once."""
    if not hasattr(oc, device):
        return f"{device}: this version of Octants has no such device"
    try:
        oc.init(arch=getattr(oc, device), enable_fallback=False, log_level="error")
    except oc.OctantsDeviceUnavailable as error:
        return str(error)
    oc.reset()
    if device == "cuda":
        _keep_open(device)
    return None


#: Sessions that no test uses. While there is one, the driver keeps the GPU's context, which takes tenths of a second to make.
_kept: list[Runtime] = []


def _keep_open(device: str) -> None:
    runtime = Runtime()
    runtime.begin(runtime.open(device, oc.f32, oc.i32, options.resolve({})))
    _kept.append(runtime)
