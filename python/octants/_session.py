"""The current session: ``init``, ``reset``, ``sync``, and what is made in it."""

from __future__ import annotations

import os

from . import _options
from ._octants import DataType, Func, Kernel, Ndarray, Runtime, dtypes

#: The one piece of state of the package: which session is current.
runtime = Runtime()


class Arch:
    """A kind of device that kernels run on."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self):
        return f"oc.{self.name}"


cpu = Arch("cpu")
reference = Arch("reference")

#: Names that mean this machine's processor.
_host_arch = os.uname().machine
x64 = x86_64 = cpu if _host_arch in ("x86_64", "AMD64") else Arch("x64")
arm64 = cpu if _host_arch in ("aarch64", "arm64") else Arch("arm64")
cuda = Arch("cuda")
amdgpu = Arch("amdgpu")
metal = Arch("metal")
vulkan = Arch("vulkan")
gpu = [cuda, metal, vulkan, amdgpu]

_AVAILABLE = ("cpu", "reference")
_BY_NAME = {arch.name: arch for arch in (cpu, reference, cuda, amdgpu, metal, vulkan)} | {
    "x64": x64,
    "x86_64": x86_64,
    "arm64": arm64,
}


class _Config:
    """The options of the current session, as attributes."""

    def __init__(self, values: dict[str, object]):
        self.__dict__.update(values)

    def __repr__(self):
        return "\n".join(f"{name} = {value!r}" for name, value in sorted(self.__dict__.items()))


#: The configuration that ``oc.cfg`` shows.
cfg: _Config | None = None


def init(
    arch=None,
    default_fp=None,
    default_ip=None,
    _test_mode=False,
    enable_fallback=True,
    require_version=None,
    print_non_pure=False,
    src_ll_cache=True,
    **options,
):
    """Starts a session: picks a device and sets options. A session that was current ends.

    ``arch`` is a device or a list of devices tried in order; the environment variable ``OC_ARCH`` overrides it. Other options are
    keywords; a keyword beats the environment variable ``OC_<NAME>``.
    """
    global cfg
    if require_version is not None:
        _check_version(require_version)
    real = _default("default_fp", default_fp, "f", "OC_DEFAULT_FP", ("f16", "f32", "f64"), "f32")
    integer = _default("default_ip", default_ip, "i", "OC_DEFAULT_IP", ("i32", "i64"), "i32")
    values = _options.resolve(options)
    chosen = _choose(arch, enable_fallback)
    runtime.start(chosen.name, real, integer, values)
    unsigned = dtypes["u" + integer.name[1:]]
    cfg = _Config(values | {"arch": chosen, "default_fp": real, "default_ip": integer, "default_up": unsigned})
    if values["log_level"] in ("info", "debug", "trace") and not _test_mode:
        print(f"[Octants] Starting on arch={chosen.name}", flush=True)


def reset():
    """Ends the session. Arrays made in it refuse from now on; kernels compile again when they are called."""
    global cfg
    runtime.end()
    cfg = None


def sync():
    """Waits until everything that was launched is done."""
    runtime.sync()


def _choose(arch, enable_fallback: bool) -> Arch:
    named = os.environ.get("OC_ARCH")
    if named:
        if named != "gpu" and named not in _BY_NAME:
            raise ValueError(f"OC_ARCH={named!r} is no device; there are {', '.join(sorted(_BY_NAME))} and gpu")
        arch = gpu if named == "gpu" else _BY_NAME[named]
    if arch is None:
        arch = cpu
    wanted = list(arch) if isinstance(arch, (list, tuple)) else [arch]
    for one in wanted:
        if not isinstance(one, Arch):
            raise TypeError(f"arch is a device such as oc.cpu, or a list of devices, not {one!r}")
        if one.name in _AVAILABLE:
            return one
    names = ", ".join(one.name for one in wanted)
    if not enable_fallback:
        raise RuntimeError(f"no device of arch {names} is available")
    import warnings

    warnings.warn(f"no device of arch {names} is available; using the CPU", UserWarning, stacklevel=3)
    return cpu


def _default(option: str, given, kind: str, environment: str, allowed: tuple[str, ...], fallback: str) -> DataType:
    from_environment = _options.default_type(kind, environment)
    if given is None:
        return dtypes[from_environment or fallback]
    dtype = DataType.of(given)
    if dtype.name not in allowed:
        raise ValueError(f"{option} is one of {', '.join(allowed)}, not {dtype.name}")
    return dtype


def _check_version(required: str) -> None:
    from . import __version__, __version_str__

    try:
        wanted = tuple(int(part) for part in required.split("."))
    except ValueError:
        raise ValueError(f'require_version is a text such as "0.1.0", not {required!r}') from None
    if wanted[0] != __version__[0] or wanted[1:] > __version__[1 : len(wanted)]:
        raise Exception(f"the program requires Octants {required}, and this is {__version_str__}")


class ScalarNdarray(Ndarray):
    """An array of scalars in device memory. Make one with ``oc.ndarray(dtype, shape)``."""


def ndarray(dtype, shape, needs_grad=False):
    """A zeroed array: ``oc.ndarray(oc.f32, (480, 640))``."""
    if needs_grad:
        from .exceptions import OctantsRuntimeError

        raise OctantsRuntimeError("needs_grad=True: gradients are not supported yet")
    return ScalarNdarray(runtime, dtype, shape)


def rebuild_ndarray(dtype, data):
    """Makes an array again from its pickle."""
    if runtime.arch is None:
        raise RuntimeError("call oc.init() before unpickling an ndarray")
    array = ndarray(dtype, data.shape)
    array.from_numpy(data)
    return array


def kernel(fn=None, *, pure=None, fastcache=False, graph=False, checkpoints=False):
    """Compiles a function into a kernel: its outermost ``for`` loops run in parallel on all cores.

    Every parameter is annotated: ``oc.f32``, ``int``, ``oc.types.ndarray(dtype=oc.f32, ndim=1)``. Compiled when first called, once
    for each kind of arguments. Every kernel is cached, so ``pure`` and ``fastcache`` change nothing.
    """
    if graph or checkpoints:
        from .exceptions import OctantsSyntaxError

        raise OctantsSyntaxError("graph=True and checkpoints=True are not supported yet")
    return _decorate(Kernel, fn)


def func(fn=None, *, is_real_function=False, requires_top_level=False):
    """Marks a function that kernels call: its body is compiled into each caller."""
    if is_real_function or requires_top_level:
        from .exceptions import OctantsSyntaxError

        raise OctantsSyntaxError("is_real_function and requires_top_level are not supported yet")
    return _decorate(Func, fn)


def _decorate(kind, fn):
    if fn is None:
        return lambda function: _decorate(kind, function)
    if not hasattr(fn, "__code__"):
        from .exceptions import OctantsSyntaxError

        raise OctantsSyntaxError(f"@oc.{kind.__name__.lower()} decorates a function, not {type(fn).__name__}")
    return kind(fn, runtime)
