"""Turns a program into something to call under one system: `bind(...)` gives a `Bound`.

Owns how arguments reach `run` in each kind of system. Runs in the worker; the driver never imports it.
"""

from __future__ import annotations

import ctypes
import importlib
import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from .programs import BadProgram, Data, Program, load_module

IMPORT_LINE = re.compile(r"^import octants as qd$", re.MULTILINE)


@dataclass
class Bound:
    """`call(*arguments)` runs the program once; `finish()` waits; `outputs(returned)` gives results as numpy.

    `definition_s` is what it took to execute the program's text: a system may do part of its compiling there.
    """

    call: Callable[..., Any]
    arguments: tuple[Any, ...]
    outputs: Callable[[Any], Data]
    finish: Callable[[], None]
    definition_s: float = 0.0


def nothing() -> None:
    pass


def start(kind: str, system: str, arch: str = "cpu") -> ModuleType | None:
    """Imports the system and initialises it where it asks for that."""
    if kind == "c":
        return None
    if kind == "numba":
        return importlib.import_module("numba")
    module = importlib.import_module(system)
    if kind == "torch":
        module.set_default_device(arch)
        module.zeros(1)
        return module
    module.init(arch=getattr(module, arch), offline_cache=False, enable_fallback=False)
    return module


def bind(kind: str, system: str, program: Program, data: Data, scratch: Path, fill: bool = True) -> Bound:
    """`fill=False` leaves a language's arrays as allocated: copying into them may compile kernels of its own."""
    source = program.source(kind, system)
    if source is None:
        raise BadProgram(f"{program.name} has no version for {system}")
    if kind == "language":
        return bind_language(system, program, source, data, scratch, fill)
    if kind == "numba":
        return bind_numba(program, source, data)
    if kind == "torch":
        return bind_torch(program, source, data)
    return bind_c(program, source, data, scratch)


def bind_language(system: str, program: Program, source: Path, data: Data, scratch: Path, fill: bool) -> Bound:
    """The program's text with its one import line changed. A text with its own `prepare` binds itself."""
    text, changed = IMPORT_LINE.subn(f"import {system} as qd", source.read_text())
    if changed != 1:
        raise BadProgram(f"{source}: needs exactly one line 'import octants as qd'")
    path = scratch / f"{program.name}_{system}.py"
    path.write_text(text)
    begin = time.perf_counter()
    module = load_module(path.stem, path)
    definition_s = time.perf_counter() - begin
    qd = module.qd
    if hasattr(module, "prepare"):
        call, arguments, outputs = module.prepare(data, fill)
        return Bound(call, tuple(arguments), outputs, qd.sync, definition_s)
    keep, values = program.numpy_arguments, {}
    for name, value in data.items():
        array = keep and isinstance(value, np.ndarray)
        values[name] = value if array else language_value(qd, value, program.elements.get(name, ()), fill)

    def outputs(returned: Any) -> Data:
        arrays = {name: values[name] for name in program.outputs}
        results = {name: a if isinstance(a, np.ndarray) else a.to_numpy() for name, a in arrays.items()}
        return _with_returned(program, results, returned)

    return Bound(module.run, tuple(values.values()), outputs, qd.sync, definition_s)


def language_value(qd: ModuleType, value: Any, element: tuple[int, ...] = (), fill: bool = True) -> Any:
    """A scalar as Python's; a numpy array as an ndarray, whose last axes may be those of a vector or matrix."""
    if not isinstance(value, np.ndarray):
        return value.item()
    dtype = {"float32": qd.f32, "int32": qd.i32, "uint32": qd.u32}[value.dtype.name]
    shape = value.shape[: value.ndim - len(element)]
    if len(element) == 2:
        array = qd.Matrix.ndarray(*element, dtype, shape)
    elif element:
        array = qd.Vector.ndarray(*element, dtype, shape)
    else:
        array = qd.ndarray(dtype, shape)
    if fill:
        array.from_numpy(value)
    return array


def bind_numba(program: Program, source: Path, data: Data) -> Bound:
    begin = time.perf_counter()
    module = load_module(f"{program.name}_numba", source)
    definition_s = time.perf_counter() - begin

    def outputs(returned: Any) -> Data:
        return _from_data(program, data, returned)

    return Bound(module.run, tuple(data.values()), outputs, nothing, definition_s)


def bind_torch(program: Program, source: Path, data: Data) -> Bound:
    """`run` takes the inputs in order: a scalar as Python's, an array as a tensor of the default device."""
    import torch

    begin = time.perf_counter()
    module = load_module(f"{program.name}_torch", source)
    definition_s = time.perf_counter() - begin
    device = torch.get_default_device()
    values = {
        name: torch.from_numpy(value).to(device) if isinstance(value, np.ndarray) else value.item()
        for name, value in data.items()
    }

    def outputs(returned: Any) -> Data:
        return _with_returned(program, {name: values[name].cpu().numpy() for name in program.outputs}, returned)

    finish = torch.cuda.synchronize if device.type == "cuda" else nothing
    return Bound(module.run, tuple(values.values()), outputs, finish, definition_s)


def bind_c(program: Program, source: Path, data: Data, scratch: Path) -> Bound:
    """`run` takes the inputs in order: a scalar by value, an array as pointer followed by its int64_t extents."""
    library = ctypes.CDLL(str(compile_c(program, source, scratch)))
    types: list[Any] = []
    arguments: list[Any] = []
    for value in data.values():
        if isinstance(value, np.ndarray):
            arguments += [value.ctypes.data, *value.shape]
            types += [ctypes.c_void_p, *(ctypes.c_int64 for _ in value.shape)]
        else:
            arguments.append(value.item())
            types.append(np.ctypeslib.as_ctypes_type(value.dtype))
    run = library.run
    run.argtypes = types
    run.restype = None if program.returns is None else np.ctypeslib.as_ctypes_type(np.dtype(program.returns))
    return Bound(run, tuple(arguments), lambda returned: _from_data(program, data, returned), nothing)


def compile_c(program: Program, source: Path, scratch: Path) -> Path:
    from .systems import C_FLAGS

    library = scratch / f"{program.name}.so"
    flags = [*C_FLAGS, *(["-ffast-math"] if program.fast_math else [])]
    command = ["gcc", *flags, "-shared", "-fPIC", "-o", str(library), str(source), "-lm"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise BadProgram(f"gcc refused {source.name} of {program.name}:\n{done.stdout}")
    return library


def _from_data(program: Program, data: Data, returned: Any) -> Data:
    return _with_returned(program, {name: data[name] for name in program.outputs}, returned)


def _with_returned(program: Program, results: Data, returned: Any) -> Data:
    return results if program.returns is None else results | {"returned": np.dtype(program.returns).type(returned)}
