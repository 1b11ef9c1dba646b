"""The current session: ``init``, ``reset``, ``sync``, and what is made in it."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable

from .. import _logging
from .._octants import DataType, Func, Kernel, OpenSession, Runtime, dtypes, host_only
from ..exceptions import OctantsDeviceUnavailable
from . import forked as _forked
from . import options as _options

#: The one piece of state of the package: which session is current.
runtime = Runtime()
atexit.register(runtime.finish)
os.register_at_fork(
    before=runtime.before_fork, after_in_parent=runtime.after_fork, after_in_child=runtime.after_fork_in_child
)
os.register_at_fork(after_in_child=_forked.forget_imports_of_parent)


class Arch:
    """A kind of device that kernels run on."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self):
        return f"oc.{self.name}"


cpu = Arch("cpu")
reference = Arch("reference")
#: Quadrants' name of what runs kernels slowly, one step after the other, so that their results can be trusted.
python = reference
remote = Arch("remote")

#: Names that mean this machine's processor.
_host_arch = os.uname().machine
x64 = x86_64 = cpu if _host_arch in ("x86_64", "AMD64") else Arch("x64")
arm64 = cpu if _host_arch in ("aarch64", "arm64") else Arch("arm64")
cuda = Arch("cuda")
amdgpu = Arch("amdgpu")
metal = Arch("metal")
vulkan = Arch("vulkan")
gpu = [cuda, metal, vulkan, amdgpu]

_BY_NAME = {arch.name: arch for arch in (cpu, reference, remote, cuda, amdgpu, metal, vulkan)} | {
    "python": python,
    "x64": x64,
    "x86_64": x86_64,
    "arm64": arm64,
}


class _Config:
    """The options of the current session, as attributes. Those that only later compilations look at can be set."""

    def __init__(self, values: dict[str, object]):
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: object):
        if name not in self.__dict__:
            raise AttributeError(f"oc.cfg has no option {name!r}")
        if name in _LIVE:
            if name == "log_level":
                _logging.set_logging_level(str(value))
            self.__dict__[name] = value
            if name not in _options.INERT:
                runtime.configure(self.__dict__)
        elif value != self.__dict__[name]:
            raise AttributeError(f"oc.cfg.{name} belongs to the session: set it with oc.init({name}={value!r})")

    def __repr__(self):
        return "\n".join(f"{name} = {value!r}" for name, value in sorted(self.__dict__.items()))


#: Options that can change while a session lives.
_LIVE = (
    "check_out_of_bound", "log_level", "print_compile_times", "print_full_traceback", "print_ir", "print_kernel_asm", "print_kernel_llvm_ir",
    "print_kernel_llvm_ir_optimized", "raise_on_templated_floats", "short_circuit_operators", "unrolling_limit", *_options.INERT,
)  # fmt: skip

#: The configuration that ``oc.cfg`` shows.
cfg: _Config | None = None


def init(
    arch=None,
    default_fp=None,
    default_ip=None,
    _test_mode=False,
    enable_fallback=True,
    require_version=None,
    **options,
):
    """Starts a session: picks a device and sets options. A session that was current ends.

    ``arch`` is a device or a list of devices tried in order; without one, the environment variable ``OC_ARCH`` names it. Other options are
    keywords; a keyword beats the environment variable ``OC_<NAME>``.
    """
    host_only("init")
    global cfg
    if require_version is not None:
        _check_version(require_version)
    real = _default("default_fp", default_fp, "f", "OC_DEFAULT_FP", ("f16", "f32", "f64"), "f32")
    integer = _default("default_ip", default_ip, "i", "OC_DEFAULT_IP", ("i32", "i64"), "i32")
    values = _options.resolve(options)
    wanted = _wanted(arch)
    before = _logging.logging_level()
    _logging.set_logging_level(str(values["log_level"]))
    # A session that was current goes on if no other one can be had.
    try:
        opened, chosen = _open_first(
            wanted, enable_fallback, lambda device: runtime.open(device.name, real, integer, values)
        )
    except BaseException:
        _logging.set_logging_level(before)
        raise
    if cfg is not None:
        reset()
    runtime.begin(opened)
    unsigned = dtypes["u" + integer.name[1:]]
    cfg = _Config(values | {"arch": chosen, "default_fp": real, "default_ip": integer, "default_up": unsigned})
    if _logging.is_logging_effective(_logging.INFO) and not _test_mode:
        print(f"[Octants] Starting on arch={chosen.name}", flush=True)


def reset():
    """Ends the session. Arrays made in it refuse from now on; kernels compile again when they are called."""
    from .._peer.inside import get_runtime

    get_runtime().clear()


def end():
    """Ends the session, whatever wraps ``reset``."""
    global cfg
    runtime.end()
    cfg = None
    if runtime.call_hook is not None:
        from ..ad.tape import forget_watchers

        forget_watchers()


def is_watched() -> bool:
    """Whether a Tape or a FwdMode sees what this thread does."""
    if runtime.call_hook is None:
        return False
    from ..ad.tape import watchers

    return any(watcher._sees_copies for watcher in watchers())


def sync(*, all: bool = False):
    """Waits until everything that was launched in the default stream is done; with ``all=True``, in every stream.

    Fields under ``oc.root`` get their memory, if they have none yet.
    """
    from .._fields.builder import materialise_root

    host_only("sync")
    materialise_root()
    runtime.sync(bool(all))


def _wanted(arch) -> list[Arch]:
    """The devices to try, in order: those of the argument, or that of ``OC_ARCH``."""
    named = os.environ.get("OC_ARCH")
    if named and arch is None:
        if named != "gpu" and named not in _BY_NAME:
            raise ValueError(f"OC_ARCH={named!r} is no device; there are {', '.join(sorted(_BY_NAME))} and gpu")
        arch = gpu if named == "gpu" else _BY_NAME[named]
    if arch is None:
        arch = cpu
    wanted = list(arch) if isinstance(arch, (list, tuple)) else [arch]
    for one in wanted:
        if not isinstance(one, Arch):
            raise TypeError(f"arch is a device such as oc.cpu, or a list of devices, not {one!r}")
    return wanted


def _open_first(
    wanted: list[Arch], enable_fallback: bool, open_on: Callable[[Arch], OpenSession]
) -> tuple[OpenSession, Arch]:
    """A session on the first device that can be opened; if there is none, on the CPU with a line that says why."""
    missing_by_reason: dict[str, list[str]] = {}
    for device in wanted:
        missing = _hidden(device)
        if missing is None:
            try:
                return open_on(device), device
            except OctantsDeviceUnavailable as error:
                missing = str(error)
        missing_by_reason.setdefault(missing, []).append(device.name)
    reasons = (f"{', '.join(names)}: {missing}" for missing, names in missing_by_reason.items())
    reason = "; ".join(reasons) or "the list of devices is empty"
    if not enable_fallback:
        raise OctantsDeviceUnavailable(f"no device is available: {reason}")
    if _logging.is_logging_effective(_logging.WARN):
        print(
            f"[Octants] Using the CPU, for no device that was asked for is available: {reason}",
            file=sys.stderr,
            flush=True,
        )
    return open_on(cpu), cpu


def _hidden(device: Arch) -> str | None:
    """Why a device is not even tried: this version has none of its kind, or the environment hides it."""
    if device.name not in runtime.arches:
        return "not supported by this version of Octants"
    variable = f"OC_ENABLE_{device.name.upper()}"
    text = os.environ.get(variable, "1")
    try:
        return None if int(text) else f"hidden by {variable}={text}"
    except ValueError:
        raise ValueError(f"the environment variable {variable} must be 0 or 1, not {text!r}") from None


def _default(option: str, given, kind: str, environment: str, allowed: tuple[str, ...], fallback: str) -> DataType:
    from_environment = _options.default_type(kind, environment)
    if given is None:
        return dtypes[from_environment or fallback]
    dtype = DataType.of(given)
    if dtype.name not in allowed:
        raise ValueError(f"{option} is one of {', '.join(allowed)}, not {dtype.name}")
    return dtype


# The releases whose programs run here: a program that asks for one of these, or an older one of the same major number, gets it.
_PEERS = {"Quadrants": (1, 3, 3), "Taichi": (1, 7, 4)}


def _check_version(required: str) -> None:
    """Raises unless this is the version, of Octants or of a system whose programs it runs, that a program asks for, or a newer one.

    What follows the numbers, such as a revision in ``"1.3.0.dev4+g1a2b3c"``, is not compared.
    """
    import re

    from .. import __version__
    from .._octants import __version__ as __version_str__

    numbers = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?![^.+a-z-])", required) if isinstance(required, str) else None
    if numbers is None:
        raise ValueError(f'require_version is a text such as "0.1.0", not {required!r}')
    wanted = tuple(int(part or 0) for part in numbers.groups())
    known = {"Octants": __version__, **_PEERS}
    if not any(wanted[0] == version[0] and wanted <= version for version in known.values()):
        peers = " and ".join(f"{name} {'.'.join(map(str, version))}" for name, version in _PEERS.items())
        raise Exception(
            f"the program requires version {required}, and this is Octants {__version_str__}, which stands for {peers}"
        )


def show(kernel: str, ir: str, llvm: str | None, optimised: str | None, assembly: str | None):
    """Prints the texts of a new compilation that the options ask for."""
    assert cfg is not None
    for option, stage, text in (
        ("print_ir", "IR", ir),
        ("print_kernel_llvm_ir", "LLVM IR", llvm),
        ("print_kernel_llvm_ir_optimized", "optimised LLVM IR", optimised),
        ("print_kernel_asm", "assembly", assembly),
    ):
        if getattr(cfg, option) and text is not None:
            print(f"[Octants] {stage} of {kernel}:\n{text}", flush=True)


def show_times(kernel: str, phases: list[tuple[str, float]], tasks: int, code_bytes: int):
    """Prints where the time of a compilation went, in milliseconds. Only the front end ran if equal code was there."""
    total = sum(time for _, time in phases)
    parts = ", ".join(f"{name} {time:.2f}" for name, time in phases)
    found = "; equal code was there" if len(phases) == 1 else ""
    code = f"{tasks} tasks, {code_bytes} bytes"
    print(f"[Octants] compiled {kernel} in {total:.2f} ms: {parts} ({code}){found}", file=sys.stderr, flush=True)


def show_cache_notice(reason: str):
    """Says why compiled kernels are not kept on disk."""
    if _logging.is_logging_effective(_logging.WARN):
        print(f"[Octants] compiled kernels are not kept on disk: {reason}", file=sys.stderr, flush=True)


def dump_compile_config():
    """Prints all options of the session."""
    print(cfg if cfg is not None else "no session: call oc.init()", flush=True)


def kernel(fn=None, *, pure=None, fastcache=False, graph=False, checkpoints=False):
    """Compiles a function into a kernel: its outermost ``for`` loops run in parallel on all cores.

    Every parameter is annotated: ``oc.f32``, ``int``, ``oc.types.ndarray(dtype=oc.f32, ndim=1)``. Compiled when first called, once
    for each kind of arguments. Every kernel is kept on disk; ``fastcache=True`` promises that this one depends on its arguments alone,
    which is checked, and changes nothing else. A kernel with ``graph=True`` runs as any
    other, but takes no ``qd_stream`` and has no ``oc.stream_parallel`` blocks.
    """
    if checkpoints and not graph:
        from ..exceptions import OctantsSyntaxError

        raise OctantsSyntaxError("checkpoints=True requires graph=True")
    if pure is not None:
        import warnings

        warnings.warn("pure is deprecated; use fastcache", DeprecationWarning, stacklevel=2)
    if checkpoints:
        from ..exceptions import OctantsSyntaxError

        raise OctantsSyntaxError("checkpoints=True is not in Octants yet: launch the kernels one after the other")
    return _decorate(Kernel, fn, bool(fastcache or pure), bool(graph))


def func(fn=None, *, is_real_function=False, requires_top_level=False):
    """Marks a function that kernels call: its body is compiled into each caller."""
    return _decorate(Func, fn, *((requires_top_level, True) if is_real_function else (requires_top_level,)))


def real_func(fn=None):
    """Marks a function that is compiled on its own, once for each kind of arguments, and called by kernels.

    It may call itself and return from anywhere. Every parameter is annotated; ``oc.ref(T)`` passes a variable by reference.
    """
    return _decorate(Func, fn, False, True)


def pure(fn):
    """Deprecated: every kernel is cached."""
    import warnings

    warnings.warn("oc.pure is deprecated; use @oc.kernel(fastcache=True)", DeprecationWarning, stacklevel=2)
    return fn


def _decorate(kind, fn, *options):
    if fn is None:
        return lambda function: _decorate(kind, function, *options)
    if isinstance(fn, (staticmethod, classmethod)):
        return type(fn)(_decorate(kind, fn.__func__, *options))
    if hasattr(fn, "__code__"):
        decorated = kind(fn, runtime, *options)
        decorated.__doc__, decorated.__module__ = fn.__doc__, fn.__module__
        return decorated
    from ..exceptions import OctantsSyntaxError

    name = kind.__name__.lower()
    # What is registered with a perf_dispatch is the kernel, not the function in it.
    if isinstance(fn, (Kernel, Func)) or type(fn).__module__ == "octants._session.perf_dispatch":
        raise OctantsSyntaxError(
            f"[KERNEL_ANNOTATION_ORDER] @oc.{name} stands above another decorator of Octants; a function takes one of them"
        )
    raise OctantsSyntaxError(f"@oc.{name} decorates a function, not {type(fn).__name__}")
