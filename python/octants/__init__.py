"""Octants compiles Python functions into native parallel kernels.

>>> import octants as oc
>>> oc.init(arch=oc.cpu)
>>> @oc.kernel
... def scale(x: oc.types.ndarray(dtype=oc.f32, ndim=1), a: oc.f32):
...     for i in x:
...         x[i] *= a
"""

from __future__ import annotations

import sys

from . import _session, ad, experimental, math, profiler, types
from ._arrays import MatrixNdarray, Ndarray, ScalarNdarray, VectorNdarray, ndarray
from ._fields.axes import axes, i, ij, ijk, ijkl, ijl, ik, ikl, il, j, jk, jkl, jl, k, kl, l
from ._fields.builder import FieldsBuilder, deactivate_all_snodes, root
from ._fields.field import Field
from ._fields.making import Layout, field, matrix_field, struct_field, vector_field
from ._fields.matrix import MatrixField
from ._fields.node import SNode
from ._fields.quantised import BitpackedFields
from ._fields.scalar import ScalarField
from ._fields.struct import StructField
from ._language import (
    abs,  # noqa: A004
    acos,
    asin,
    atan2,
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_exchange,
    atomic_max,
    atomic_min,
    atomic_mul,
    atomic_or,
    atomic_sub,
    atomic_xor,
    bit_cast,
    bit_shr,
    cast,
    ceil,
    clock_counter,
    clock_freq_hz,
    cos,
    erf,
    exp,
    floor,
    grouped,
    log,
    loop_config,
    max,  # noqa: A004
    min,  # noqa: A004
    ndrange,
    one,
    pow,  # noqa: A004
    random,
    raw_div,
    raw_mod,
    round,  # noqa: A004
    rsqrt,
    select,
    sin,
    sqrt,
    static,
    static_assert,
    static_print,
    stream_parallel,
    tan,
    tanh,
    volatile_load,
    zero,
)
from ._language.data_oriented import data_oriented
from ._language.fields import (
    activate,
    append,
    assume_in_range,
    block_local,
    cache_read_only,
    deactivate,
    get_addr,
    is_active,
    length,
    loop_unique,
    no_activate,
    rescale_index,
    stop_grad,
)
from ._language.frexp import frexp
from ._language.normal import randn
from ._language.pyfunc import pyfunc
from ._language.threads import global_thread_idx, outer
from ._logging import CRITICAL, DEBUG, ERROR, INFO, TRACE, WARN, is_logging_effective, set_logging_level
from ._matrix import Matrix, Vector
from ._matrix.decompositions import eig, make_spd, polar_decompose, solve, svd, sym_eig
from ._matrix.struct import OfClass, Struct, dataclass
from ._octants import BufferView, explain
from ._octants import __version__ as __version_str__
from ._peer.install_as import install_as
from ._primitive_types import *  # noqa: F403
from ._session import (
    amdgpu,
    arm64,
    cpu,
    cuda,
    dump_compile_config,
    func,
    gpu,
    init,
    kernel,
    metal,
    pure,
    python,
    real_func,
    reference,
    remote,
    reset,
    sync,
    vulkan,
    x64,
    x86_64,
)
from ._session.compile import compile, compile_all  # noqa: A004
from ._session.device import DeviceProperties, device_properties
from ._session.extensions import extension, is_extension_enabled
from ._session.perf_dispatch import perf_dispatch
from ._session.streams import Event, Stream, create_event, create_stream
from ._tensor import Backend, MatrixTensor, Tensor, VectorTensor, matrix_tensor, tensor, vector_tensor, wrap
from .exceptions import (
    OctantsAssertionError,
    OctantsCompilationError,
    OctantsDeviceUnavailable,
    OctantsNameError,
    OctantsRuntimeError,
    OctantsRuntimeTypeError,
    OctantsSyntaxError,
    OctantsTypeError,
    QuadrantsAssertionError,
    QuadrantsCompilationError,
    QuadrantsNameError,
    QuadrantsRuntimeError,
    QuadrantsRuntimeTypeError,
    QuadrantsSyntaxError,
    QuadrantsTypeError,
)
from .types import Ref as ref
from .types import Template, sparse_matrix_builder, template

setattr(Matrix, "field", staticmethod(matrix_field))  # noqa: B010
setattr(Vector, "field", staticmethod(vector_field))  # noqa: B010
setattr(Matrix, "tensor", staticmethod(matrix_tensor))  # noqa: B010
setattr(Vector, "tensor", staticmethod(vector_tensor))  # noqa: B010
setattr(Struct, "field", OfClass("field", struct_field))  # noqa: B010
del OfClass, matrix_field, matrix_tensor, struct_field, vector_field, vector_tensor

__version__ = tuple(int(part) for part in __version_str__.split("."))


#: Modules that are imported when they are asked for.
_MODULES = ("_lib", "_snode", "algorithms", "graph", "interop", "lang", "linalg", "simt", "sparse", "tools")


def __getattr__(name: str):
    if name == "cfg":
        return _session.cfg
    if name in ("DeviceCapability", "Format"):
        from .types import enums

        return getattr(enums, name)
    if name.startswith("Taichi"):
        from . import exceptions

        return getattr(exceptions, name)
    if not name.startswith("_") and "taichi" in sys.modules:
        from ._peer import taichi

        if taichi.is_installed() and name in taichi.__all__:
            return getattr(taichi, name)
    from ._on_demand import module

    return module(__name__, name, _MODULES, name)
