"""``oc.field`` and its like: fields from types and shapes."""

from __future__ import annotations

import enum
import weakref

from .._matrix.promotion import data_type
from .._matrix.struct import StructType
from .._matrix.types import MatrixType
from .._octants import DataType, refusal
from ..exceptions import OctantsRuntimeError, OctantsSyntaxError
from .axes import MAX_AXES, Axes, axes
from .builder import FieldsBuilder, current_root
from .field import Field, user_line
from .matrix import MatrixField
from .node import whole
from .quantised import (
    PackedStructField,
    QuantisedField,
    QuantisedMatrixField,
    QuantisedType,
    declared,
    require_bare,
)
from .scalar import ScalarField
from .struct import StructField


class Layout(enum.IntEnum):
    """How the entries of vectors, or the members of structs, lie: side by side in each element, or each in an array of its own.

    Where no choice is made, as ``NULL`` says, they lie side by side.
    """

    AOS = 0
    SOA = 1
    NULL = 2


def field(
    dtype,
    shape=None,
    order=None,
    name="",
    offset=None,
    needs_grad=False,
    needs_dual=False,
    layout=Layout.AOS,
):
    """A field: ``oc.field(oc.f32, shape=(4, 8))``. Without a shape it is placed later: ``oc.root.dense(oc.i, 8).place(x)``.

    ``dtype`` may be a type of vectors, matrices or structs. ``order="ji"`` makes ``i`` the axis that varies fastest in memory;
    ``offset`` is the index of the first element; ``needs_grad`` and ``needs_dual`` place ``x.grad`` and ``x.dual`` too.
    """
    if isinstance(dtype, QuantisedType):
        require_bare(shape, order, offset, needs_grad, needs_dual)
        return declared(QuantisedField(dtype, name))
    made = _unplaced(dtype, name, _needs(needs_grad, needs_dual))
    return _placed_or_declared(made, shape, order, offset, layout)


def vector_field(
    n,
    dtype,
    shape=None,
    order=None,
    name="",
    offset=None,
    needs_grad=False,
    needs_dual=False,
    layout=Layout.AOS,
):
    """A field of vectors: ``oc.Vector.field(3, oc.f32, shape=8)``. ``dtype`` may be a list with a type for each entry."""
    extents = (whole(n, "n"),)
    return _of_entries(extents, dtype, shape, order, name, offset, needs_grad, needs_dual, layout)


def matrix_field(
    n,
    m,
    dtype,
    shape=None,
    order=None,
    name="",
    offset=None,
    needs_grad=False,
    needs_dual=False,
    layout=Layout.AOS,
):
    """A field of matrices: ``oc.Matrix.field(2, 2, oc.f32, shape=8)``. ``dtype`` may be a nested list with a type for each entry."""
    extents = (whole(n, "n"), whole(m, "m"))
    return _of_entries(extents, dtype, shape, order, name, offset, needs_grad, needs_dual, layout)


def _of_entries(extents, dtype, shape, order, name, offset, needs_grad, needs_dual, layout):
    if _is_quantised(dtype):
        require_bare(shape, order, offset, needs_grad, needs_dual)
        return declared(_quantised_matrix(extents, dtype, name))
    made = _matrix(extents, dtype, name, _needs(needs_grad, needs_dual))
    return _placed_or_declared(made, shape, order, offset, layout)


def struct_field(
    members,
    methods=None,
    shape=None,
    order=None,
    name="<Struct>",
    offset=None,
    needs_grad=False,
    needs_dual=False,
    layout=Layout.AOS,
):
    """A field of structs: ``oc.Struct.field({"mass": oc.f32, "pos": vec3}, shape=8)``."""
    if not isinstance(members, dict) or not members:
        raise OctantsSyntaxError(f"the members of a struct are a dict of names and types, not {members!r}")
    if any(_is_quantised(dtype) for dtype in members.values()):
        require_bare(shape, order, offset, needs_grad, needs_dual)
        return declared(_packed_struct(members, methods, "" if name == "<Struct>" else name))
    return struct_type_field(StructType(members, methods), shape, order, name, offset, needs_grad, needs_dual, layout)


def struct_type_field(
    struct_type,
    shape=None,
    order=None,
    name="<Struct>",
    offset=None,
    needs_grad=False,
    needs_dual=False,
    layout=Layout.AOS,
):
    """A field of structs of a type."""
    made = _struct(struct_type, "" if name == "<Struct>" else name, _needs(needs_grad, needs_dual))
    return _placed_or_declared(made, shape, order, offset, layout)


# ---- fields that are not placed yet -----------------------------------------------------------------------------------------


def _needs(needs_grad, needs_dual) -> tuple[str, ...]:
    return ("grad",) * bool(needs_grad) + ("dual",) * bool(needs_dual)


def _unplaced(dtype, name: str, needs: tuple[str, ...]) -> Field:
    if isinstance(dtype, MatrixType):
        if dtype.unpacked:
            raise OctantsSyntaxError(f"{dtype!r} is for members of an @oc.dataclass, not for elements of a field")
        dtype.require_dtype("elements of a field")
        return _matrix(dtype.get_shape(), dtype.dtype, name, needs)
    if isinstance(dtype, StructType):
        return _struct(dtype, name, needs)
    made = ScalarField(_checked_type(dtype, needs), name)
    made._needs = needs
    return made


def _matrix(element_shape: tuple[int, ...], dtype, name: str, needs: tuple[str, ...]) -> MatrixField:
    if min(element_shape) < 1:
        raise OctantsRuntimeError(f"the elements of a field have at least one entry, not shape {element_shape}")
    made = MatrixField(element_shape, [_checked_type(one, needs) for one in _entry_types(element_shape, dtype)], name)
    made._needs = needs
    return made


def _is_quantised(dtype) -> bool:
    """Whether a type, or one in a nested list, is of quantised numbers."""
    if isinstance(dtype, (list, tuple)):
        return any(_is_quantised(one) for one in dtype)
    return isinstance(dtype, QuantisedType)


def _quantised_matrix(element_shape: tuple[int, ...], dtype, name: str) -> QuantisedMatrixField:
    if min(element_shape) < 1:
        raise OctantsRuntimeError(f"the elements of a field have at least one entry, not shape {element_shape}")
    entries = _entry_types(element_shape, dtype)
    for one in entries:
        if not isinstance(one, QuantisedType):
            raise OctantsRuntimeError(f"either all entries of a vector or matrix are quantised or none is, not {one!r}")
    return QuantisedMatrixField(element_shape, entries, name)


def _packed_struct(members: dict, methods, name: str) -> PackedStructField:
    computed = {key: dtype.compute if _is_quantised(dtype) else dtype for key, dtype in members.items()}
    fields: dict = {}
    for key, dtype in members.items():
        called = f"{name}.{key}" if name else key
        if _is_quantised(dtype):
            fields[key] = QuantisedField(dtype, called)
        else:
            fields[key] = _placed_or_declared(_unplaced(dtype, called, ()), None, None, None, Layout.AOS)
    return PackedStructField(StructType(computed, methods), fields, name)


def _entry_types(element_shape: tuple[int, ...], dtype) -> list:
    """A type for each entry, by rows."""
    if not isinstance(dtype, (list, tuple)):
        count = element_shape[0] * (element_shape[1] if len(element_shape) == 2 else 1)
        return [dtype] * count
    rows = [dtype] if len(element_shape) == 1 else list(dtype)
    width = element_shape[-1]
    expected = 1 if len(element_shape) == 1 else element_shape[0]
    if len(rows) != expected or any(not isinstance(row, (list, tuple)) or len(row) != width for row in rows):
        raise OctantsSyntaxError(f"elements of shape {element_shape} have a type for each entry; got {dtype!r}")
    return [one for row in rows for one in row]


def _struct(struct_type: StructType, name: str, needs: tuple[str, ...]) -> StructField:
    members = {
        key: _unplaced(dtype, f"{name}.{key}" if name else key, needs) for key, dtype in struct_type.members.items()
    }
    made = StructField(struct_type, members, name)
    made._needs = needs
    return made


def _checked_type(dtype, needs: tuple[str, ...]) -> DataType:
    found = data_type(dtype)
    if needs and found.is_integral:
        raise OctantsRuntimeError(f"{found} is not supported for field with `needs_grad=True` or `needs_dual=True`.")
    return found


# ---- placing ----------------------------------------------------------------------------------------------------------------


def _placed_or_declared(made: Field, shape, order, offset, layout):
    """The field in a tree of its own if it has a shape; else it waits to be placed."""
    if layout not in (*Layout, None):
        raise ValueError(f"layout is oc.Layout.AOS or oc.Layout.SOA, not {layout!r}")
    layout = Layout.NULL if layout is None else Layout(layout)
    if shape is None:
        for what, given in (("offset", offset), ("order", order)):
            if given is not None:
                raise OctantsSyntaxError(f"shape cannot be None when {what} is set")
        for part in (made, *made._leaf_fields()):
            part._origin_text = user_line()
        current_root()._declared.extend(weakref.ref(part) for part in made._leaf_fields())
        return made
    shape = tuple(whole(extent, "an extent") for extent in ([shape] if not hasattr(shape, "__iter__") else shape))
    allocate([made, *(made._companion(kind) for kind in made._needs)], shape, order, offset, layout)
    made._placement = (shape, order, offset, layout)
    current_root()._apart.add(made)
    return made


def allocate(fields: list, shape: tuple[int, ...], order, offset, layout: Layout) -> None:
    """Places fields in a new tree that has nothing else, each in a node of its own."""
    if len(shape) > MAX_AXES:
        text = f"a field has at most {MAX_AXES} axes, and a shape of {len(shape)} extents was given"
        hint = "let one axis stand for several: `x[i * m + j]`, or use vectors and matrices as elements"
        raise refusal("OC0415", text, hint)
    axes_in_order = _ordered(shape, order)
    if offset is not None:
        offset = [whole(first, "an offset") for first in ([offset] if not hasattr(offset, "__iter__") else offset)]
        if len(offset) != len(shape):
            raise OctantsSyntaxError(
                f"The dimensionality of shape and offset must be the same ({len(shape)} != {len(offset)})"
            )
    builder = FieldsBuilder()
    extents = [shape[axis] for axis in axes_in_order]
    for made in fields:
        for part in _parts(made) if layout is Layout.SOA else [made]:
            builder.dense(axes_in_order, extents).place(part, offset=offset)
        if list(axes_in_order) != sorted(axes_in_order):
            for part in (made, *_parts(made)):
                part._permutation = tuple(axes_in_order)
    builder._finish_or_wait()


def like(field: Field) -> Field:
    """A field of the same elements, which has no place and no gradients."""
    if isinstance(field, MatrixField):
        return MatrixField(field._element_shape, field._dtypes)
    assert isinstance(field, ScalarField)
    return ScalarField(field.dtype)


def allocate_like(field: Field) -> Field:
    """A field of the same elements and indices, in a tree of its own, without gradients."""
    made = like(field)
    origin = field._origin()
    allocate([made], field.shape, None, origin if any(origin) else None, Layout.AOS)
    return made


def _parts(made: Field) -> list:
    """What lies apart with ``Layout.SOA``."""
    if isinstance(made, StructField):
        return [made.get_member_field(name) for name in made.keys]
    return list(made._each_entry()) if isinstance(made, MatrixField) else [made]


def _ordered(shape: tuple[int, ...], order) -> Axes:
    """The axes as they are nested in memory, the outermost first."""
    if order is None:
        return axes(*range(len(shape)))
    if isinstance(order, tuple):
        return axes(*order)
    if not isinstance(order, str):
        raise TypeError(f'order is a text such as "ji", not {order!r}')
    if len(order) != len(shape):
        raise OctantsSyntaxError(
            f"The dimensionality of shape and order must be the same ({len(shape)} != {len(order)})"
        )
    if len(set(order)) != len(order):
        raise OctantsSyntaxError("The axes in order must be different")
    for letter in order:
        if not 0 <= ord(letter) - ord("i") < len(shape):
            raise OctantsSyntaxError(f"Invalid axis {letter}")
    return axes(*(ord(letter) - ord("i") for letter in order))
