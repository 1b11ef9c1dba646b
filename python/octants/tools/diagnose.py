# type: ignore  (in the kernel language annotations are values)
"""A report on the environment, for those who ask why a program does not run: ``python -m octants.tools.diagnose``.

Devices are tried in processes of their own, so that a session of the caller, and a driver that crashes, do not matter.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import octants as oc

__all__ = ["main"]

#: The devices that are tried.
_DEVICES = ("cpu", "cuda", "reference")
#: What is said of libraries that programs use beside Octants.
_LIBRARIES = ("numpy", "torch", "jax", "cupy", "quadrants", "taichi", "genesis-world")
#: Variables that change what Octants does.
_VARIABLES = ("OC_", "OCTANTS_", "QD_", "TI_", "CUDA_")
#: How long a device may take, in seconds. Chosen, not measured: the first kernel on a GPU takes some seconds on a busy machine.
_LIMIT_S = 120


def main() -> None:
    """Prints the report."""
    print("Octants\n")
    _table(
        ("version", f"{oc.__version_str__}, LLVM {oc._octants.llvm_version}"),
        ("installed in", os.path.dirname(oc.__file__)),
        ("Python", f"{platform.python_implementation()} {platform.python_version()}, {sys.executable}"),
        ("system", f"{platform.platform()}, {_distribution()}"),
        (
            "processor",
            f"{_processor()}, {os.cpu_count()} threads, {len(os.sched_getaffinity(0))} of them for this process",
        ),
        ("memory", _memory()),
        ("libraries", ", ".join(_versions()) or "none"),
        ("kept kernels", oc._session.options.cache_folder(os.environ.get("OC_OFFLINE_CACHE_FILE_PATH", ""))),
    )
    print("\nDevices\n")
    _table(*((name, _tried(name)) for name in _DEVICES), ("NVIDIA's driver", _nvidia()))
    settings = sorted(name for name in os.environ if name.startswith(_VARIABLES))
    print("\nEnvironment\n")
    _table(
        *((name, os.environ[name]) for name in settings)
        if settings
        else [("none", "no variable that Octants reads is set")]
    )
    print("\nPlease add this report when you tell of a problem.")


def _table(*rows: tuple[str, str]) -> None:
    width = max(len(name) for name, _ in rows)
    for name, text in rows:
        print(f"  {name:<{width}}  {text}")


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return "an unknown distribution"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _memory() -> str:
    try:
        lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        whole, free = (int(lines[name].split()[0]) / 2**20 for name in ("MemTotal", "MemAvailable"))
    except (OSError, KeyError, ValueError):
        return "unknown"
    return f"{whole:.1f} GiB, {free:.1f} GiB of them free"


def _versions() -> list[str]:
    found = []
    for name in _LIBRARIES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return found


def _tried(device: str) -> str:
    """Whether a kernel runs on a device, in a process of its own."""
    folder = os.path.dirname(os.path.dirname(oc.__file__))
    path = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))
    environment = {name: value for name, value in os.environ.items() if name != "OC_ARCH"} | {"PYTHONPATH": path}
    command = [sys.executable, "-m", __spec__.name if __spec__ else __name__, device]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_LIMIT_S)
    except subprocess.TimeoutExpired:
        return f"no answer in {_LIMIT_S} s"
    said = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
    text = said[-1] if said else f"ended with status {done.returncode}"
    return text if done.returncode == 0 else f"does not run: {text.partition('Unavailable: ')[2] or text}"


def _nvidia() -> str:
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=_LIMIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"nvidia-smi does not answer: {error}"
    return "; ".join(done.stdout.strip().splitlines()) if done.returncode == 0 else done.stdout.strip() or "none"


@oc.kernel
def _squares(x: oc.types.NDArray[oc.i32, 1]):
    for i in x:
        x[i] = i * i


def _run_on(device: str) -> None:
    """Runs a kernel on a device and says so; raises where that is not possible."""
    oc.init(arch=getattr(oc, device), enable_fallback=False, log_level="error")
    x = oc.ndarray(oc.i32, 1000)
    _squares(x)
    if [x[i] for i in (0, 7, 999)] != [0, 49, 998001]:
        raise RuntimeError("a kernel gave wrong results")
    print("runs kernels")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _run_on(sys.argv[1])
    else:
        main()
