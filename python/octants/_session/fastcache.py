"""``fastcache=True``: what a kernel promises by it, and what is said where it does not hold.

Octants keeps every kernel and needs no promise. It is checked for the sake of programs that run elsewhere, too.
"""

from __future__ import annotations

import enum
import types
import warnings
from typing import NamedTuple

from .._octants import BoundKernel, DataType, Func, Kernel

#: What is part of a program's text.
_DEFINITIONS = (
    type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, enum.Enum, BoundKernel, DataType, Func, Kernel,
)  # fmt: skip

#: Where the language's own objects come from; those of the last are data.
_OWN = ("octants",)
_DATA = (
    "Ndarray",
    "Field",
    "ScalarField",
    "MatrixField",
    "StructField",
    "Tensor",
    "BufferView",
    "Matrix",
    "Vector",
    "Struct",
)

_PLAIN = (type(None), bool, int, float, complex, str, bytes, enum.Enum)


class Observations(NamedTuple):
    """What became of the newest code of a kernel with ``fastcache=True``."""

    cache_key_generated: bool
    cache_loaded: bool
    cache_stored: bool

    @property
    def cache_validated(self) -> bool:
        return self.cache_loaded


def _is_own(object: object) -> bool:
    return type(object).__module__.split(".")[0] in _OWN


def is_definition(object: object) -> bool:
    """Whether a global is part of the program's text rather than a value."""
    if isinstance(object, _DEFINITIONS):
        return True
    return _is_own(object) and type(object).__name__ not in _DATA


def tell_not_pure(kernel: str) -> None:
    """Names a kernel without the promise, on ``init(print_non_pure=True)``."""
    print(f"[NOT_PURE] {kernel} is compiled, and has no fastcache=True", flush=True)


def check_arguments(kernel: str, names: list[str], arguments: tuple[object, ...]) -> None:
    """Warns of arguments of which nobody else could say whether they have changed, and of the kernel that has such."""
    unknown = [(name, argument) for name, argument in zip(names, arguments, strict=True) if not _is_known(argument)]
    for name, argument in unknown:
        warnings.warn(
            f"[FASTCACHE][PARAM_INVALID] argument {name} of {kernel} is of type {type(argument).__name__}, which has no key of its own: "
            "fastcache=True has no effect (the kernel is kept anyway)",
            UserWarning,
            stacklevel=3,
        )

    if unknown:
        warnings.warn(
            f"[FASTCACHE][INVALID_FUNC] {kernel} has no key above its code: {', '.join(name for name, _ in unknown)} cannot be compared with another process's",
            UserWarning,
            stacklevel=3,
        )


def _is_known(argument: object) -> bool:
    if isinstance(argument, (*_PLAIN, *_DEFINITIONS)) or _is_own(argument):
        return True
    kind = type(argument)
    if hasattr(kind, "__dataclass_fields__") or hasattr(kind, "__octants_template_primitives__"):
        return True
    # Arrays: numpy's, torch's, whatever shares its memory.
    return hasattr(argument, "__array_interface__") or hasattr(argument, "__dlpack__") or hasattr(argument, "dtype")
