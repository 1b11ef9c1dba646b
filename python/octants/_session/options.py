"""The options of ``oc.init``: their names, defaults and environment forms.

An explicit keyword beats the environment variable ``OC_<NAME>``. Options that tune the internals of another system are accepted
and change nothing.
"""

from __future__ import annotations

import os
import sys

from .._octants import processors

#: Options that the compiler or the runtime reads, with their defaults. ``None`` means "decided by the session".
MEANINGFUL: dict[str, object] = {
    "opt_level": 1,
    "debug": False,
    "check_out_of_bound": False,
    "fast_math": True,
    "cpu_max_num_threads": None,
    "device_id": None,
    "device_process": False,
    "num_compile_threads": 4,
    "random_seed": 0,
    "short_circuit_operators": True,
    "simt_on_cpu": True,
    "unrolling_limit": 32,
    "print_full_traceback": False,
    "raise_on_templated_floats": False,
    "log_level": "info",
    "print_ir": False,
    "print_kernel_llvm_ir": False,
    "print_kernel_llvm_ir_optimized": False,
    "print_kernel_asm": False,
    "print_compile_times": False,
    "kernel_profiler": False,
    "offline_cache": True,
    "offline_cache_cleaning_factor": 0.25,
    "offline_cache_cleaning_policy": "lru",
    "offline_cache_file_path": "",
    "offline_cache_max_size_of_files": 100 * 1024 * 1024,
    "print_non_pure": False,
    "src_ll_cache": True,
    "sparse_memory_limit": None,
    "tape_memory_limit": None,
}

#: Options accepted for the sake of programs written for Quadrants.
INERT: dict[str, object] = {
    "ad_stack_experimental_enabled": False,
    "ad_stack_size": 0,
    "ad_stack_sparse_threshold_bytes": 100 * 1024 * 1024,
    "advanced_optimization": True,
    "auto_mesh_local_default_occupacy": 4,
    "cache_loop_invariant_global_vars": True,
    "cfg_optimization": True,
    "constant_folding": True,
    "cpu_block_dim_adaptive": True,
    "cuda_stack_limit": 0,
    "debug_dump_path": "/tmp/ir/",
    "default_ad_stack_size": 0,
    "default_cpu_block_dim": 32,
    "default_gpu_block_dim": 128,
    "demote_dense_struct_fors": True,
    "demote_no_access_mesh_fors": True,
    "detect_read_only": True,
    "device_memory_GB": 1.0,
    "device_memory_fraction": 0.0,
    "experimental_auto_mesh_local": False,
    "external_metal_command_queue": 0,
    "external_metal_command_queue_is_torch_queue": False,
    "flatten_if": False,
    "force_scalarize_matrix": False,
    "gdb_trigger": False,
    "gpu_max_reg": 0,
    "half2_vectorization": False,
    "lower_access": True,
    "make_block_local": True,
    "make_mesh_block_local": True,
    "make_thread_local": True,
    "max_block_dim": 0,
    "mesh_localize_all_attr_mappings": False,
    "mesh_localize_from_end_mapping": False,
    "mesh_localize_to_end_mapping": True,
    "move_loop_invariant_outside_if": False,
    "optimize_mesh_reordered_mapping": True,
    "print_accessor_ir": False,
    "print_ir_dbg_info": False,
    "print_kernel_amdgcn": False,
    "print_preprocessed_ir": False,
    "print_struct_llvm_ir": False,
    "quant_opt_atomic_demotion": True,
    "quant_opt_store_fusion": True,
    "real_matrix_scalarize": True,
    "saturating_grid_dim": 0,
    "simplify_after_lower_access": True,
    "simplify_before_lower_access": True,
    "timeline": False,
    "use_llvm": True,
    "verbose": True,
    "verbose_kernel_launches": False,
    "vk_api_version": "",
}

#: What ``oc.init`` takes besides options.
_PARAMETERS = ("arch", "default_fp", "default_ip", "enable_fallback", "require_version")

#: Inert options that a user could believe in: asking for them gets one warning.
_MISLEADING = ("timeline",)

#: Environment variables with a name of their own.
_SHORT_NAMES = {"print_compile_times": "OC_TIME"}


def _from_environment(name: str, default: object) -> object | None:
    variable = "OC_" + name.upper()
    if variable not in os.environ:
        variable = _SHORT_NAMES.get(name, variable)
    text = os.environ.get(variable)
    if text is None:
        return None
    try:
        if isinstance(default, bool):
            return bool(int(text))
        if isinstance(default, int) or default is None:
            return int(text)
        if isinstance(default, float):
            return float(text)
    except ValueError:
        kind = "0 or 1" if isinstance(default, bool) else "a number"
        raise ValueError(f"the environment variable {variable} must be {kind}, not {text!r}") from None
    return text


def resolve(given: dict[str, object]) -> dict[str, object]:
    """All options with their values: defaults, then the environment, then what was given."""
    known = MEANINGFUL | INERT
    given = _without_taichi(given)
    for name in given:
        if name not in known:
            raise KeyError(_unknown(name, known))
    options: dict[str, object] = {}
    for name, default in known.items():
        environment = _from_environment(name, default)
        if name in given:
            options[name] = _checked(name, given[name], default)
            if environment is not None and environment != given[name]:
                _warn(
                    f"option {name}={given[name]!r} of oc.init() overrides the environment variable OC_{name.upper()}"
                )
        else:
            options[name] = default if environment is None else environment
    options["offline_cache_file_path"] = cache_folder(str(options["offline_cache_file_path"]))
    options["cpu_max_num_threads"] = options["cpu_max_num_threads"] or processors()
    if options["device_id"] is None:
        options["device_id"] = _visible_device()
    for name in _MISLEADING:
        if options[name]:
            _warn(f"option {name} has no effect in this version of Octants")
    return options


def _without_taichi(given: dict[str, object]) -> dict[str, object]:
    """Without options of Taichi alone, of which a program that runs as Taichi's is told once."""
    if "taichi" not in sys.modules or given.keys() <= MEANINGFUL.keys() | INERT.keys():
        return given
    from .._peer import taichi

    dropped = sorted(taichi.OPTIONS & given.keys() - MEANINGFUL.keys() - INERT.keys()) if taichi.is_installed() else []
    if dropped:
        names = " and ".join([", ".join(dropped[:-1]), dropped[-1]] if dropped[:-1] else dropped)
        _warn(
            f"option{'s' if dropped[:-1] else ''} {names} of Taichi ha{'ve' if dropped[:-1] else 's'} no effect in Octants"
        )
    return {name: value for name, value in given.items() if name not in dropped}


def cache_folder(given: str = "") -> str:
    """Where compiled kernels are kept: in the folder that is given, or in the user's own for such things."""
    if given:
        return os.path.abspath(os.path.expanduser(given))
    above = os.environ.get("XDG_CACHE_HOME", "")
    # Relative ones are not to be used, says their specification.
    if not os.path.isabs(above):
        above = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(above, "octants")


def _visible_device() -> int:
    """Which of several devices to use if nothing else says so. Devices that ``CUDA_VISIBLE_DEVICES`` hides are not counted."""
    text = os.environ.get("OC_VISIBLE_DEVICE", "0")
    if not text.isascii() or not text.isdecimal():
        raise ValueError(f"the environment variable OC_VISIBLE_DEVICE must be the number of a device, not {text!r}")
    return int(text)


def _checked(name: str, value: object, default: object) -> object:
    """The value, if it is of the option's kind."""
    kinds: tuple[type, ...]
    if isinstance(default, bool):
        kinds = (bool, int)
    elif isinstance(default, int) or default is None:
        kinds = (int,)
    elif isinstance(default, float):
        kinds = (int, float)
    else:
        kinds = (str,)
    if not isinstance(value, kinds) and not hasattr(value, "__index__"):
        raise TypeError(f"option {name} of oc.init() takes {kinds[-1].__name__}, not {type(value).__name__}")
    if kinds == (int,) and name != "random_seed" and value < 0:  # type: ignore[operator]
        raise ValueError(f"option {name} of oc.init() cannot be negative: {value}")
    return value


def default_type(kind: str, environment: str) -> str | None:
    """The name of a default type from ``OC_DEFAULT_FP`` or ``OC_DEFAULT_IP``, which are ``32`` or ``64``."""
    text = os.environ.get(environment)
    if text is None:
        return None
    if text not in ("32", "64"):
        raise ValueError(f"{environment} must be 32 or 64, not {text!r}")
    return kind + text


def _unknown(name: str, known: dict[str, object]) -> str:
    if name == "default_up":
        return "default_up is derived from default_ip and cannot be set"
    from difflib import get_close_matches

    close = get_close_matches(name, [*_PARAMETERS, *known], n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"oc.init() has no option {name}{hint}"


def _warn(message: str) -> None:
    """Warns at the program's line that called into this package."""
    import warnings

    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "octants":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)
