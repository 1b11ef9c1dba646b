"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .._arrays import Ndarray, ndarray
from .._fields.axes import axes
from .._fields.builder import deactivate_all_snodes, root
from .._fields.making import field
from .._language import grouped, one, static, static_assert, static_print, zero
from .._language.fields import stop_grad
from .._matrix import Matrix, Vector
from .._octants import BufferView, Kernel
from .._octants import is_compiling as inside_kernel
from .._peer.inside import PyQuadrants, current_cfg, get_max_shared_memory_bytes, get_runtime
from .._session import reset

__all__ = [
    "Matrix",
    "Vector",
    "inside_kernel",
    "Kernel",
    "Ndarray",
    "BufferView",
    "stop_grad",
    "deactivate_all_snodes",
    "one",
    "zero",
    "axes",
    "PyQuadrants",
    "current_cfg",
    "field",
    "get_max_shared_memory_bytes",
    "get_runtime",
    "grouped",
    "ndarray",
    "reset",
    "root",
    "static",
    "static_assert",
    "static_print",
]
