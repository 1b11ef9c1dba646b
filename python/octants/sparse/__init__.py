# type: ignore  (in the kernel language annotations are values)
"""Sparse grids of structs, and how full a sparse field is."""

from __future__ import annotations

from .. import _language as lang
from .._fields.axes import ij, ijk
from .._fields.builder import root
from .._fields.field import Field
from .._fields.making import struct_field
from .._fields.node import SNode
from .._fields.quantised import QuantisedField
from .._primitive_types import i64
from .._session import kernel
from .._tensor_wrapper import Tensor
from ..exceptions import OctantsTypeError
from ..types import Template

__all__ = ["grid", "usage"]


def grid(field_dict, shape):
    """A field of structs of two or three axes whose elements are active once they are written: ``grid({"mass": oc.f32}, (64, 64))``."""
    if len(shape) not in (2, 3):
        raise ValueError(f"a sparse grid has 2 or 3 axes, not {len(shape)}")
    field = struct_field(field_dict)
    root.bitmasked(ij if len(shape) == 2 else ijk, shape).place(field)
    return field


@kernel
def _active(x: Template) -> i64:
    count = i64(0)
    for _ in lang.grouped(x):
        count += i64(1)
    return count


def usage(x) -> float:
    """The part of a field's elements that are active, from 0 to 1."""
    x = x._unwrap() if isinstance(x, Tensor) else x
    if not isinstance(x, (Field, QuantisedField, SNode)):
        raise OctantsTypeError(f"oc.sparse.usage takes a field, not {type(x).__name__}")
    total = 1
    for extent in x.shape:
        total *= extent
    return _active(x) / total
